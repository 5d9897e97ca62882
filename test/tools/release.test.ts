import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import manifest from "../../packages/gateway/package.json" with { type: "json" };
import { publishedAddresses } from "../../tools/build/manifest.ts";
import { publicationsOf, withoutFiles } from "../../tools/release/artifacts.ts";
import {
  filesWithNames,
  isVersion,
  manifests,
  releaseChangelog,
  releaseManifest,
  releaseNames,
  releaseNotes,
} from "../../tools/release/texts.ts";
import { projectFolder } from "../../packages/testing/src/process/child-program.ts";

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
  expect(() => releaseChangelog(text, "0.2.0", "2026-11-21")).toThrow("CHANGELOG.md has nothing under [Unreleased]");
});

test("a version that the changelog begins with is released as it is, and not with more", () => {
  const written = "# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-01-01\n\n- B.\n";
  expect(releaseChangelog(written, "0.1.0", "2026-11-21")).toBe(written);
  const more = written.replace("## [0.1.0]", "### Added\n\n- A.\n\n## [0.1.0]");
  expect(() => releaseChangelog(more, "0.1.0", "2026-11-21")).toThrow("CHANGELOG.md has 0.1.0 already");
});

test("the changelog has the version of the packages", () => {
  const changelog = readFileSync(join(projectFolder, "CHANGELOG.md"), "utf8");
  const heading = `^## \\[${manifest.version.replaceAll(".", "\\.")}\\] - 2\\d{3}-\\d\\d-\\d\\d$`;
  expect(changelog).toMatch(new RegExp(heading, "m"));
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

/** Returns the lines that name something of ours in a version. */
function linesWith(version: string, texts: readonly string[]): string[] {
  const pattern = new RegExp(`(?<![\\d.])${version.replaceAll(".", "[.-]")}(?![\\d-])`);
  return texts.flatMap((text) => text.split("\n")).filter((line) => line.includes("plantstore") && pattern.test(line));
}

test("pages and deploy/ name the tarballs and the image of the version that is released", () => {
  const texts = filesWithNames.map((file) => readFileSync(join(projectFolder, file), "utf8"));
  const before = linesWith(manifest.version, texts);
  expect(before.length).toBeGreaterThan(5);
  const released = texts.map((text) => releaseNames(text, manifest.version, "99.9.9"));
  expect(linesWith(manifest.version, released)).toEqual([]);
  expect(linesWith("99.9.9", released)).toHaveLength(before.length);
});

test("a bill of materials does not say where the tarballs were on the machine that wrote it", () => {
  const site = { type: "website", url: "https://a.example" };
  const bill = {
    components: [{ name: "a", externalReferences: [{ type: "distribution", url: "file:/home/a.tgz" }, site] }],
  };
  expect(JSON.parse(withoutFiles(JSON.stringify(bill)))).toEqual({
    components: [{ name: "a", externalReferences: [site] }],
  });
});

test("the tarball of each package is published, after those that it needs", () => {
  const commands = publicationsOf("1.0.0", "/a").map(({ publish }) => publish.join(" "));
  const names = ["gateway", "http-engine", "docs-page", "rest-client", "auth", "telemetry", "proxy", "conformance"].map(
    (name) => `plantstore-${name}`,
  );
  expect(commands).toEqual(
    [...names, "plantstore"].map((name) => `npm publish --provenance --access public /a/${name}-1.0.0.tgz`),
  );
});

test("a version before a release is published under the tag next, so that npm does not install it by default", () => {
  const [first] = publicationsOf("1.0.0-rc.1", "/a");
  expect(first?.publish.join(" ")).toBe(
    "npm publish --provenance --access public --tag next /a/plantstore-gateway-1.0.0-rc.1.tgz",
  );
});

test.each(["0.1.0", "10.20.30", "1.0.0-rc.1", "1.0.0-0", "1.0.0-alpha-1.x", "1.0.0-0a"])("%s is a version", (text) => {
  expect(isVersion(text)).toBe(true);
});

test.each(["", "1", "1.0", "v1.0.0", "01.0.0", "1.0.0-", "1.0.0-01", "1.0.0-a..b", "1.0.0+build", " 1.0.0", "1.0.0\n"])(
  "%j is not a version that npm publishes as it is",
  (text) => {
    expect(isVersion(text)).toBe(false);
  },
);

test("release notes are what the changelog has under the version", () => {
  const changelog =
    "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-11-21\n\n### Added\n\n- A.\n\n## [0.1.0] - 2026-01-01\n\n- B.\n";
  expect(releaseNotes(changelog, "0.2.0")).toBe("### Added\n\n- A.\n");
  expect(releaseNotes(changelog, "0.1.0")).toBe("- B.\n");
  expect(() => releaseNotes(changelog, "0.3.0")).toThrow("CHANGELOG.md has no 0.3.0");
});

test("packages say where the project is found, by one value", () => {
  expect(publishedAddresses("https://a.example/b", "packages/gateway")).toEqual({
    homepage: "https://a.example/b#readme",
    bugs: "https://a.example/b/issues",
    repository: { type: "git", url: "git+https://a.example/b.git", directory: "packages/gateway" },
  });
});

test("nothing points to an address that the project does not have", () => {
  expect(publishedAddresses(undefined, "packages/gateway")).toEqual({});
});
