import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { projectFolder as project, readManifest } from "../../protoport/tools/build/manifest.ts";
import { type Publication, publicationsOf } from "../../protoport/tools/build/publications.ts";
import { makeArtifacts, releaseFolder } from "./artifacts.ts";
import {
  filesWithNames,
  isVersion,
  manifests,
  packageNames,
  releaseChangelog,
  releaseManifest,
  releaseNames,
  releaseNotes,
} from "./texts.ts";

// Prepares a release on this machine and publishes nothing. RELEASING.md describes how to publish the release.
//
//   npm run release -- 0.2.0                  versions, changelog, all checks, dist/release/, a commit and the tag v0.2.0
//   npm run release -- 0.2.0 --skip-checks    the same without checks, on a commit that has passed .ci/run
//   npm run release -- --artifacts            only dist/release/, for the version of the checkout
//   npm run release -- --publish              publishes dist/release/, on a CI that npm supports for provenance
//
// Exit codes: 0 for success, 1 for a failure, 2 for wrong usage.

/** The error for wrong usage, such as an invalid version. */
class UsageError extends Error {}

function git(...args: readonly string[]): string {
  return execFileSync("git", args, { cwd: project, encoding: "utf8" }).trim();
}

function npm(...args: readonly string[]): void {
  execFileSync("npm", args, { cwd: project, stdio: "inherit" });
}

function read(file: string): string {
  return readFileSync(join(project, file), "utf8");
}

/** Returns the version in the checkout's manifests. */
function currentVersion(): string {
  return readManifest(join(project, manifests[0] ?? "")).version;
}

/** Returns the new contents of the files that a version changes. Throws before anything is written. */
function contentsOf(version: string): ReadonlyMap<string, string> {
  const before = currentVersion();
  const contents = new Map<string, string>();
  for (const file of manifests) contents.set(file, releaseManifest(read(file), before, version));
  for (const file of filesWithNames) contents.set(file, releaseNames(read(file), before, version));
  contents.set("CHANGELOG.md", releaseChangelog(read("CHANGELOG.md"), version, new Date().toISOString().slice(0, 10)));
  return contents;
}

function writeArtifacts(version: string): void {
  npm("run", "--silent", "build");
  mkdirSync(releaseFolder, { recursive: true });
  makeArtifacts(version, releaseNotes(read("CHANGELOG.md"), version));
}

function prepare(version: string, skipsChecks: boolean): void {
  if (!isVersion(version)) {
    throw new UsageError(`version must be a semantic version such as 0.2.0 or 0.2.0-rc.1, got "${version}"`);
  }
  const changed = git("status", "--porcelain");
  if (changed !== "") throw new Error(`the working tree has uncommitted changes; commit or discard them:\n${changed}`);
  const tag = `v${version}`;
  if (git("tag", "--list", tag) !== "") throw new Error(`tag ${tag} already exists; choose another version`);
  const contents = contentsOf(version);
  try {
    writeRelease(version, contents, skipsChecks);
  } catch (reason) {
    const message = reason instanceof Error ? reason.message : String(reason);
    throw new Error(`${message}\nrun "git restore ." to discard the changes made so far`, { cause: reason });
  }
  // Without --cleanup=verbatim, git would remove the Markdown headings as comments.
  git("tag", "--annotate", "--cleanup=verbatim", "--file", join(releaseFolder, "RELEASE_NOTES.md"), tag);
  console.log(`\ncreated the tag ${tag} and dist/release/; nothing is published yet: see RELEASING.md`);
  if (readManifest(join(project, "package.json")).repository === undefined)
    console.log('package.json has no "repository": npm requires it to publish with provenance');
}

/** Writes the changed files, runs all checks, and commits the files. */
function writeRelease(version: string, contents: ReadonlyMap<string, string>, skipsChecks: boolean): void {
  for (const [file, text] of contents) writeFileSync(join(project, file), text);
  npm("install", "--package-lock-only", "--no-audit", "--no-fund");
  if (!skipsChecks) {
    npm("run", "--silent", "check");
    npm("test", "--silent");
    npm("run", "--silent", "suite", "--", "package");
  }
  writeArtifacts(version);
  const isChanged = git("status", "--porcelain", "--untracked-files=no") !== "";
  if (isChanged) git("commit", "--quiet", "--all", "--message", `release: Prepare ${version}`);
}

/** Publishes the packages that npm does not have yet, so that an interrupted release can be continued. */
function publish(version: string): void {
  for (const publication of publicationsOf(packageNames(), version, releaseFolder)) {
    const [program, ...args] = publication.publish;
    if (isPublished(publication, version)) console.log(`${publication.id} is already published, skipped`);
    else execFileSync(program, args, { cwd: project, stdio: "inherit" });
  }
}

/**
 * Returns whether npm has a version. Returns `false` also if npm fails, because npm refuses to publish an existing
 * version.
 */
function isPublished({ find: [program, ...args] }: Publication, version: string): boolean {
  // Errors are ignored, because they nearly always mean that the version does not exist.
  const { stdout } = spawnSync(program, args, { cwd: project, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  return stdout === `${version}\n`;
}

const options = {
  artifacts: { type: "boolean", default: false },
  publish: { type: "boolean", default: false },
  "skip-checks": { type: "boolean", default: false },
} as const;

/** Parses the command line. @throws UsageError when an option is unknown */
function parseCommandLine() {
  try {
    return parseArgs({ options, allowPositionals: true });
  } catch (reason) {
    throw new UsageError(reason instanceof Error ? reason.message : String(reason));
  }
}

function main(): void {
  const { values, positionals } = parseCommandLine();
  if (values.artifacts) return writeArtifacts(currentVersion());
  if (values.publish) return publish(currentVersion());
  prepare(positionals.length === 1 ? (positionals[0] ?? "") : "", values["skip-checks"]);
}

try {
  main();
} catch (reason) {
  console.error(`not released: ${reason instanceof Error ? reason.message : String(reason)}`);
  process.exitCode = reason instanceof UsageError ? 2 : 1;
}
