import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import manifest from "../../../../protoport/gateway/package.json" with { type: "json" };
import { publishedAddresses } from "../../../../protoport/tools/build/manifest.ts";
import { publicationsOf } from "../../../../protoport/tools/build/publications.ts";
import { withoutFiles } from "../../../../tools/release/artifacts.ts";
// oxfmt-ignore
import { filesWithNames, isVersion, packageNames, releaseChangelog, releaseNames
} from "../../../../tools/release/texts.ts";
import { projectFolder } from "@protoport/testing/process";

test.each([
  { name: "without an [Unreleased] section", text: "# Changelog\n" },
  { name: "with an empty [Unreleased] section", text: "## [Unreleased]\n\n## [0.1.0] - 2026-01-01\n\n- B.\n" },
])("a changelog $name fails a release", ({ text }) => {
  expect(() => releaseChangelog(text, "0.2.0", "2026-11-21")).toThrow("CHANGELOG.md has no changes under [Unreleased]");
});

test("a repeated release changes nothing, and fails if there are unreleased changes", () => {
  const written = "# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-01-01\n\n- B.\n";
  expect(releaseChangelog(written, "0.1.0", "2026-11-21")).toBe(written);
  const more = written.replace("## [0.1.0]", "### Added\n\n- A.\n\n## [0.1.0]");
  expect(() => releaseChangelog(more, "0.1.0", "2026-11-21")).toThrow("CHANGELOG.md already has a section 0.1.0");
});

test("the changelog has a section for the packages' version", () => {
  const changelog = readFileSync(join(projectFolder, "CHANGELOG.md"), "utf8");
  const heading = `^## \\[${manifest.version.replaceAll(".", "\\.")}\\] - 2\\d{3}-\\d\\d-\\d\\d$`;
  expect(changelog).toMatch(new RegExp(heading, "m"));
});

/** Returns the lines that name this project's artifacts in a version. */
function linesWith(version: string, texts: readonly string[]): string[] {
  const pattern = new RegExp(`(?<![\\d.])${version.replaceAll(".", "[.-]")}(?![\\d-])`);
  return texts
    .flatMap((text) => text.split("\n"))
    .filter((line) => /plantstore|protoport/.test(line) && pattern.test(line));
}

test("a release updates tarball and image names in pages and deploy/", () => {
  const texts = filesWithNames.map((file) => readFileSync(join(projectFolder, file), "utf8"));
  const before = linesWith(manifest.version, texts);
  expect(before.length).toBeGreaterThan(5);
  const released = texts.map((text) => releaseNames(text, manifest.version, "99.9.9"));
  expect(linesWith(manifest.version, released)).toEqual([]);
  expect(linesWith("99.9.9", released)).toHaveLength(before.length);
});

test("the SBOM contains no tarball paths from the build machine", () => {
  const site = { type: "website", url: "https://a.example" };
  const distribution = { type: "distribution", url: "file:/home/a.tgz" };
  const bill = { components: [{ name: "a", externalReferences: [distribution, site] }] };
  const want = { components: [{ name: "a", externalReferences: [site] }] };
  expect(JSON.parse(withoutFiles(JSON.stringify(bill)))).toEqual(want);
});

test("packages are published after their dependencies", () => {
  const commands = publicationsOf(packageNames(), "1.0.0", "/a").map(({ publish }) => publish.join(" "));
  // oxfmt-ignore
  const names = [
    "gateway", "command-line", "docs-page", "rest-client", "auth", "telemetry", "frameworks", "grpc-handlers", "proxy",
    "conformance",
  ].map((name) => `protoport-${name}`);
  expect(commands).toEqual(
    [...names, "plantstore"].map((name) => `npm publish --provenance --access public /a/${name}-1.0.0.tgz`),
  );
});

test("a prerelease gets the npm tag next", () => {
  const [first] = publicationsOf(packageNames(), "1.0.0-rc.1", "/a");
  const found = first?.publish.join(" ");
  expect(found).toBe("npm publish --provenance --access public --tag next /a/protoport-gateway-1.0.0-rc.1.tgz");
});

const valid = ["0.1.0", "10.20.30", "1.0.0-rc.1", "1.0.0-0", "1.0.0-alpha-1.x", "1.0.0-0a"];
test.each(valid)('isVersion accepts "%s"', (text) => expect(isVersion(text)).toBe(true));

const invalid = ["", "1", "1.0", "v1.0.0", "01.0.0", "1.0.0-", "1.0.0-01", "1.0.0-a..b", "1.0.0+build", " 1.0.0"];
test.each([...invalid, "1.0.0\n"])("isVersion rejects %j as a version", (text) => expect(isVersion(text)).toBe(false));

test("a package's URLs are derived from the repository's URL", () =>
  expect(publishedAddresses("https://a.example/b", "protoport/gateway")).toEqual({
    homepage: "https://a.example/b#readme",
    bugs: "https://a.example/b/issues",
    repository: { type: "git", url: "git+https://a.example/b.git", directory: "protoport/gateway" },
  }));

test("a package has no URLs while the project has no repository", () =>
  expect(publishedAddresses(undefined, "protoport/gateway")).toEqual({}));
