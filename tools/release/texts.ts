import { globSync } from "node:fs";
import { join } from "node:path";
import { projectFolder as project, protoportPackages, readManifest } from "../../protoport/tools/build/manifest.ts";

/** The packages' package.json files, relative to the project's folder. Dependencies come first. */
export const manifests: readonly string[] = [
  ...protoportPackages.map((name) => `protoport/${name}/package.json`),
  "package.json",
];

/** Returns the names of the published packages: Protoport's list, then the plant store's. */
export function packageNames(): string[] {
  return manifests.map((file) => readManifest(join(project, file)).name);
}

/** The pages and deploy/ files that may contain a version, relative to the project's folder. */
export const filesWithNames: readonly string[] = globSync(
  ["README.md", "protoport/*/README.md", "{.,protoport}/docs/**/*.md", "{.,protoport}/deploy/**/*.{md,yaml}"],
  { cwd: project },
);

// A version as in https://semver.org, without build metadata, which npm drops when it publishes.
const number = "(?:0|[1-9]\\d*)";
const identifier = `(?:${number}|\\d*[A-Za-z-][0-9A-Za-z-]*)`;
const versionPattern = new RegExp(`^${number}\\.${number}\\.${number}(?:-${identifier}(?:\\.${identifier})*)?$`);

/** Returns whether a text is a semantic version without build metadata. */
export function isVersion(text: string): boolean {
  return versionPattern.test(text);
}

/**
 * Returns the changelog with the unreleased changes moved to a new section of a version and a day. The changelog does
 * not change if its newest section is for the version, and nothing is unreleased.
 *
 * @throws Error when nothing is unreleased and the version is new, or when the version exists and changes are
 * unreleased
 */
export function releaseChangelog(text: string, version: string, day: string): string {
  const [before, unreleased] = text.split(/^## \[Unreleased\]\n/m);
  const isWritten = unreleased?.trimStart().startsWith(`## [${version}] - `) === true;
  if (isWritten) return text;
  if (unreleased?.includes(`\n## [${version}] - `)) throw new Error(`CHANGELOG.md already has a section ${version}`);
  if (!unreleased?.split(/^## /m)[0]?.includes("\n- "))
    throw new Error("CHANGELOG.md has no changes under [Unreleased]");
  return `${before}## [Unreleased]\n\n## [${version}] - ${day}\n${unreleased}`;
}

/**
 * Returns a version's section in the changelog, without its heading.
 *
 * @throws Error when the changelog does not have the version
 */
export function releaseNotes(changelog: string, version: string): string {
  const [, section] = changelog.split(`\n## [${version}] - `);
  if (section === undefined) throw new Error(`CHANGELOG.md has no section ${version}`);
  const [, ...lines] = (section.split("\n## [")[0] ?? "").split("\n");
  return `${lines.join("\n").trim()}\n`;
}

/** Returns a package.json with a new version for the packages that are released together. */
export function releaseManifest(text: string, before: string, version: string): string {
  const own = new RegExp(`("(?:version|@protoport/[\\w-]+)": )"${before.replaceAll(".", "\\.")}"`, "g");
  return text.replaceAll(own, `$1"${version}"`);
}

/** Returns a page or a file in deploy/ with the tarballs and a new version's image. */
export function releaseNames(text: string, before: string, version: string): string {
  // Some names in Kubernetes must not contain dots.
  const names = ["-0.0.0.tgz", "plantstore:0.0.0", "protoport:0.0.0", "newTag: 0.0.0", "plantstore-migrate-0-0-0"].map(
    (name) => [before, version].map((of) => name.replace("0.0.0", of).replace("0-0-0", of.replaceAll(".", "-"))),
  );
  return names.reduce((changed, [from = "", to = ""]) => changed.replaceAll(from, to), text);
}
