import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { projectFolder as project, readManifest } from "../build/manifest.ts";
import { makeArtifacts, type Publication, publicationsOf, releaseFolder } from "./artifacts.ts";
import {
  filesWithNames,
  isVersion,
  manifests,
  releaseChangelog,
  releaseManifest,
  releaseNames,
  releaseNotes,
} from "./texts.ts";

// Prepares a release on this machine. Nothing leaves it: RELEASING.md says how to publish.
//
//   npm run release -- 0.2.0                  versions, changelog, every check, dist/release/, a commit and the tag v0.2.0
//   npm run release -- 0.2.0 --skip-checks    the same on a commit that .ci/run has passed
//   npm run release -- --artifacts            dist/release/ alone, for the version of the checkout
//   npm run release -- --publish              publishes dist/release/, in a CI that npm can prove it comes from
//
// Exit codes: 0 for done, 1 for failed, 2 for wrong usage.

/** Wrong usage, such as an invalid version. */
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

/** The version that the manifests of the checkout have. */
function currentVersion(): string {
  return readManifest(join(project, manifests[0] ?? "")).version;
}

/** Returns the files that a version changes, with their new texts. Throws before anything is written. */
function textsOf(version: string): ReadonlyMap<string, string> {
  const before = currentVersion();
  const texts = new Map<string, string>();
  for (const file of manifests) texts.set(file, releaseManifest(read(file), before, version));
  for (const file of filesWithNames) texts.set(file, releaseNames(read(file), before, version));
  texts.set("CHANGELOG.md", releaseChangelog(read("CHANGELOG.md"), version, new Date().toISOString().slice(0, 10)));
  return texts;
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
  if (changed !== "") throw new Error(`uncommitted changes: commit or discard them first\n${changed}`);
  const tag = `v${version}`;
  if (git("tag", "--list", tag) !== "") throw new Error(`tag ${tag} exists: choose another version`);
  const texts = textsOf(version);
  try {
    writeRelease(version, texts, skipsChecks);
  } catch (reason) {
    const message = reason instanceof Error ? reason.message : String(reason);
    throw new Error(`${message}\n"git restore ." discards what was written so far`, { cause: reason });
  }
  // Headings of Markdown begin like comments of git.
  git("tag", "--annotate", "--cleanup=verbatim", "--file", join(releaseFolder, "RELEASE_NOTES.md"), tag);
  console.log(`\n${tag} is tagged here and dist/release/ is ready. Nothing is published: see RELEASING.md.`);
  if (readManifest(join(project, "package.json")).repository === undefined)
    console.log("package.json has no repository yet: npm publishes no provenance without it.");
}

/** Writes and commits what a version changes, after every check on it. */
function writeRelease(version: string, texts: ReadonlyMap<string, string>, skipsChecks: boolean): void {
  for (const [file, text] of texts) writeFileSync(join(project, file), text);
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

/** Publishes what npm does not have yet, because it refuses a version that exists: an interrupted release continues. */
function publish(version: string): void {
  for (const publication of publicationsOf(version)) {
    const [program, ...args] = publication.publish;
    if (isPublished(publication, version)) console.log(`${publication.id} is published already: skipped`);
    else execFileSync(program, args, { cwd: project, stdio: "inherit" });
  }
}

/** Returns whether npm has a version; `false` also when it cannot tell, as it then refuses to publish what exists. */
function isPublished({ find: [program, ...args] }: Publication, version: string): boolean {
  // Its output of errors is ignored: most of them are that the version does not exist.
  const { stdout } = spawnSync(program, args, { cwd: project, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  return stdout === `${version}\n`;
}

const options = {
  artifacts: { type: "boolean", default: false },
  publish: { type: "boolean", default: false },
  "skip-checks": { type: "boolean", default: false },
} as const;

/** Returns the words of the command line. @throws UsageError when an option is unknown */
function parsed() {
  try {
    return parseArgs({ options, allowPositionals: true });
  } catch (reason) {
    throw new UsageError(reason instanceof Error ? reason.message : String(reason));
  }
}

function main(): void {
  const { values, positionals } = parsed();
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
