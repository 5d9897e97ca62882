import { globSync } from "node:fs";
import { join } from "node:path";
import { packageFolders, projectFolder as project } from "../build/manifest.ts";

/** The package.json of each package, as a path from the project's folder, after those of the packages that it needs. */
export const manifests: readonly string[] = [...packageFolders.values()].map((folder) => join(folder, "package.json"));

/** The pages and the files of deploy/, as paths from the project's folder: what may name a version. */
export const filesWithNames: readonly string[] = globSync(
  ["README.md", "packages/*/README.md", "docs/**/*.md", "deploy/**/*.{md,yaml}"],
  { cwd: project },
);

// https://semver.org, without build metadata, which npm drops when it publishes.
const number = "(?:0|[1-9]\\d*)";
const identifier = `(?:${number}|\\d*[A-Za-z-][0-9A-Za-z-]*)`;
const versionPattern = new RegExp(`^${number}\\.${number}\\.${number}(?:-${identifier}(?:\\.${identifier})*)?$`);

/** Returns whether a text is a semantic version that npm publishes as it is. */
export function isVersion(text: string): boolean {
  return versionPattern.test(text);
}

/**
 * Returns the changelog with the unreleased changes under a version and a day. It stays as it is if that version is its
 * newest and nothing is unreleased: the first version was written before it could be published.
 *
 * @throws Error when nothing is unreleased otherwise, or when the version is there and more is unreleased
 */
export function releaseChangelog(text: string, version: string, day: string): string {
  const [before, unreleased] = text.split(/^## \[Unreleased\]\n/m);
  const isWritten = unreleased?.trimStart().startsWith(`## [${version}] - `) === true;
  if (isWritten) return text;
  if (unreleased?.includes(`\n## [${version}] - `)) throw new Error(`CHANGELOG.md has ${version} already`);
  if (!unreleased?.split(/^## /m)[0]?.includes("\n- ")) throw new Error("CHANGELOG.md has nothing under [Unreleased]");
  return `${before}## [Unreleased]\n\n## [${version}] - ${day}\n${unreleased}`;
}

/**
 * Returns what the changelog says of a version, without its heading.
 *
 * @throws Error when it has no such version
 */
export function releaseNotes(changelog: string, version: string): string {
  const [, section] = changelog.split(`\n## [${version}] - `);
  if (section === undefined) throw new Error(`CHANGELOG.md has no ${version}`);
  const [, ...lines] = (section.split("\n## [")[0] ?? "").split("\n");
  return `${lines.join("\n").trim()}\n`;
}

/** Returns a package.json with another version of the packages that are released together. */
export function releaseManifest(text: string, before: string, version: string): string {
  const own = new RegExp(`("(?:version|@plantstore/[\\w-]+)": )"${before.replaceAll(".", "\\.")}"`, "g");
  return text.replaceAll(own, `$1"${version}"`);
}

/** Returns a page or a file of deploy/ with the tarballs and the image of another version. */
export function releaseNames(text: string, before: string, version: string): string {
  // Some names in Kubernetes may have no dots.
  const names = ["-0.0.0.tgz", "plantstore:0.0.0", "newTag: 0.0.0", "plantstore-migrate-0-0-0"].map((name) =>
    [before, version].map((of) => name.replace("0.0.0", of).replace("0-0-0", of.replaceAll(".", "-"))),
  );
  return names.reduce((changed, [from = "", to = ""]) => changed.replaceAll(from, to), text);
}
