import { execFileSync } from "node:child_process";
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import packageJson from "../package.json" with { type: "json" };
import { projectFolder as project, readManifest } from "./build/manifest.ts";

// Prepares a release and stops before publishing it: npm run release -- 0.2.0
//
// Writes the version and the changelog, runs every check, and leaves the tarballs in dist/. Commit what it has changed;
// its last lines say how to publish, with a proof of where the tarballs were built. It refuses as long as the
// package.json of the project does not say where the project is found.

/** The package.json of each package, as a path from the project's folder, after those of the packages that it needs. */
export const manifests: readonly string[] = packageJson.workspaces.map((folder) => `${folder}/package.json`);
/** Their folders in dist/. */
const packages = packageJson.workspaces.map((folder) => `./dist/${basename(folder)}`);

/**
 * Returns the changelog with the unreleased changes under a version and a day; as it is where that version is the newest
 * already, as one is that was written before it can be published.
 *
 * @throws Error when nothing is unreleased otherwise, or the version is there and more is unreleased
 */
export function releaseChangelog(text: string, version: string, day: string): string {
  const [before, unreleased] = text.split(/^## \[Unreleased\]\n/m);
  const isWritten = unreleased?.trimStart().startsWith(`## [${version}] - `) === true;
  if (isWritten) return text;
  if (unreleased?.includes(`\n## [${version}] - `)) throw new Error(`${version} is in the changelog already`);
  if (!unreleased?.split(/^## /m)[0]?.includes("\n- ")) throw new Error("nothing is unreleased");
  return `${before}## [Unreleased]\n\n## [${version}] - ${day}\n${unreleased}`;
}

/** Returns a package.json, or the lockfile, with another version of the packages that are released together. */
export function releaseManifest(text: string, before: string, version: string): string {
  const own = new RegExp(`("(?:version|@plantstore/(?:gateway|operators))": )"${before.replaceAll(".", "\\.")}"`, "g");
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

/** The pages and the files of deploy/, as paths from the project's folder: what may name a version. */
export const filesWithNames: string[] = globSync(
  ["README.md", "src/*/README.md", "docs/*.md", "deploy/**/*.{md,yaml}"],
  { cwd: project },
);

function rewrite(file: string, change: (text: string) => string): void {
  const path = join(project, file);
  writeFileSync(path, change(readFileSync(path, "utf8")));
}

function run(file: string, ...args: readonly string[]): void {
  execFileSync(file, args, { cwd: project, stdio: "inherit" });
}

/** Writes what an installation of all packages consists of, in the form of CycloneDX. */
function writeBillOfMaterials(version: string): void {
  const parent = mkdtempSync(join(tmpdir(), "installation-"));
  // npm names the installation by its folder.
  const folder = join(parent, "plantstore-installation");
  mkdirSync(folder);
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({ name: "plantstore-installation", version, private: true }),
  );
  const tarballs = globSync(join(project, `dist/*-${version}.tgz`));
  const npm = (...args: readonly string[]): string =>
    execFileSync("npm", args, { cwd: folder, encoding: "utf8", maxBuffer: 16 * 1024 * 1024 });
  npm("install", "--no-audit", "--no-fund", "--ignore-scripts", ...tarballs);
  writeFileSync(join(project, "dist/sbom.json"), withoutFiles(npm("sbom", "--sbom-format", "cyclonedx")));
  rmSync(parent, { recursive: true });
}

/** Returns a bill of materials without the places of tarballs on this machine. */
export function withoutFiles(bill: string): string {
  const others = JSON.parse(bill, (_, value: unknown) =>
    Array.isArray(value) ? value.filter((each) => !String(each?.url).startsWith("file:")) : value,
  );
  return `${JSON.stringify(others, null, 2)}\n`;
}

/** Returns the commands that publish what is in dist/. */
export function publishCommands(version: string): string[] {
  // npm wants a tag for what is not to be installed by default.
  const tag = version.includes("-") ? " --tag next" : "";
  return packages.map((folder) => `npm publish --provenance --access public${tag} ${folder}`);
}

function prepare(version: string): void {
  if (!/^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(version)) throw new Error("give a version: npm run release -- 0.2.0");
  const changed = execFileSync("git", ["status", "--porcelain"], { cwd: project, encoding: "utf8" });
  if (changed !== "") throw new Error(`commit or undo these first:\n${changed}`);
  // A published package cannot be changed: without it npm proves no origin, and nobody finds the source.
  if (readManifest(join(project, "package.json")).repository === undefined)
    throw new Error("package.json does not say where the project is: give it a repository, such as https://…/plants");
  const { version: before } = readManifest(join(project, manifests[0] ?? ""));
  for (const file of manifests) rewrite(file, (text) => releaseManifest(text, before, version));
  for (const file of filesWithNames) rewrite(file, (text) => releaseNames(text, before, version));
  rewrite("CHANGELOG.md", (text) => releaseChangelog(text, version, new Date().toISOString().slice(0, 10)));
  run("npm", "install", "--package-lock-only", "--no-audit", "--no-fund");
  for (const args of [["check"], ["test"], ["suite", "--", "package"]]) run("npm", "run", "--silent", ...args);
  run("npm", "pack", "--pack-destination", "dist", ...packages);
  writeBillOfMaterials(version);
  console.log(`\nNothing is published. Commit and tag v${version}, and then, in a CI that can prove where it runs:`);
  for (const command of ["npm ci && npm run build", ...publishCommands(version)]) console.log(`  ${command}`);
}

if (import.meta.main) {
  try {
    prepare(process.argv[2] ?? "");
  } catch (reason) {
    console.error(`Nothing is released: ${reason instanceof Error ? reason.message : String(reason)}`);
    console.error("What was written so far shows by `git status`, and `git restore .` undoes it.");
    process.exitCode = 1;
  }
}
