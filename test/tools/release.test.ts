import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import project from "../../package.json" with { type: "json" };
import manifest from "../../src/gateway/package.json" with { type: "json" };
import { publishedAddresses } from "../../tools/build/manifest.ts";
import {
  filesWithNames,
  manifests,
  publishCommands,
  releaseChangelog,
  releaseManifest,
  releaseNames,
  withoutFiles,
} from "../../tools/release.ts";
import { projectFolder } from "../support/process/child-program.ts";

test("a release moves what was unreleased under its version and day", () => {
  const before = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A.\n\n## [0.1.0] - 2026-01-01\n\n- B.\n";
  expect(releaseChangelog(before, "0.2.0", "2026-11-21")).toBe(
    "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-11-21\n\n### Added\n\n- A.\n\n## [0.1.0] - 2026-01-01\n\n- B.\n",
  );
});

test.each([
  { name: "without a heading", text: "# Changelog\n" },
  { name: "with nothing under it", text: "## [Unreleased]\n\n## [0.1.0] - 2026-01-01\n\n- B.\n" },
])("a changelog $name is not released", ({ text }) => {
  expect(() => releaseChangelog(text, "0.2.0", "2026-11-21")).toThrow("nothing is unreleased");
});

test("a version that the changelog begins with is released as it is, and not with more", () => {
  const written = "# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-01-01\n\n- B.\n";
  expect(releaseChangelog(written, "0.1.0", "2026-11-21")).toBe(written);
  const more = written.replace("## [0.1.0]", "### Added\n\n- A.\n\n## [0.1.0]");
  expect(() => releaseChangelog(more, "0.1.0", "2026-11-21")).toThrow("0.1.0 is in the changelog already");
});

test("the changelog has the version of the packages", () => {
  const changelog = readFileSync(join(projectFolder, "CHANGELOG.md"), "utf8");
  const heading = `^## \\[${manifest.version.replaceAll(".", "\\.")}\\] - 2\\d{3}-\\d\\d-\\d\\d$`;
  expect(changelog).toMatch(new RegExp(heading, "m"));
});

test("a release is of every package of the workspace", () => {
  expect(manifests).toEqual(project.workspaces.map((folder) => `${folder}/package.json`));
});

test.each(manifests)("%s gets the version, and nothing else of that number", (file) => {
  const text = readFileSync(join(projectFolder, file), "utf8");
  const { version, dependencies = {}, ...others } = JSON.parse(text);
  const released = JSON.parse(releaseManifest(text, version, "9.9.9"));
  const own = Object.keys(dependencies).filter((dependency) => dependency.startsWith("@plantstore/"));
  const expected = { ...dependencies, ...Object.fromEntries(own.map((dependency) => [dependency, "9.9.9"])) };
  const { dependencies: releasedDependencies = {}, ...rest } = released;
  expect(rest).toEqual({ ...others, version: "9.9.9" });
  expect(releasedDependencies).toEqual(expected);
});

test("a version that the changelog begins with is released as it is, and not with more", () => {
  const written = "# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-01-01\n\n- B.\n";
  expect(releaseChangelog(written, "0.1.0", "2026-11-21")).toBe(written);
  const more = written.replace("## [0.1.0]", "### Added\n\n- A.\n\n## [0.1.0]");
  expect(() => releaseChangelog(more, "0.1.0", "2026-11-21")).toThrow("0.1.0 is in the changelog already");
});

test("the changelog has the version of the packages", () => {
  const changelog = readFileSync(join(projectFolder, "CHANGELOG.md"), "utf8");
  expect(changelog).toMatch(
    new RegExp(`^## \\[${manifest.version.replaceAll(".", "\\.")}\\] - 2\\d{3}-\\d\\d-\\d\\d$`, "m"),
  );
});
