import { execFileSync } from "node:child_process";
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { readManifest } from "./build/manifest.ts";

// Prepares a release and stops before publishing it: npm run release -- 0.2.0
//
// Writes the version and the changelog, runs every check, and leaves the tarballs in dist/. Commit what it has changed;
// its last lines say how to publish, with a proof of where the tarballs were built. It refuses as long as the
// package.json of the project does not say where the project is found.

const project = resolve(import.meta.dirname, "..");
/** The folders in dist/ of what is published, in the order in which the packages need each other. */
const packages = ["gateway", "operators", "plantstore", "conformance"] as const;
/** The package.json of each of them, as paths from the project's folder. */
export const manifests: readonly string[] = packages.map((name) =>
  name === "conformance" ? `${name}/package.json` : `src/${name}/package.json`,
);

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
  return text
    .replaceAll(`-${before}.tgz`, `-${version}.tgz`)
    .replaceAll(`plantstore:${before}`, `plantstore:${version}`)
    .replaceAll(`newTag: ${before}`, `newTag: ${version}`)
    .replaceAll(`plantstore-migrate-${dashed(before)}`, `plantstore-migrate-${dashed(version)}`);
}

// A name in Kubernetes may have no dots in all places.
function dashed(version: string): string {
  return version.replaceAll(".", "-");
}

/** Returns the pages and the files of deploy/, as paths from the project's folder: what may name a version. */
export function filesWithNames(): string[] {
  return globSync(["README.md", "docs/*.md", "deploy/**/*.{md,yaml}"], { cwd: project });
}

function rewrite(file: string, change: (text: string) => string): void {
  const path = join(project, file);
  writeFileSync(path, change(readFileSync(path, "utf8")));
}

function run(file: string, ...args: readonly string[]): void {
  execFileSync(file, args, { cwd: project, stdio: "inherit" });
}

/** The parts of a bill of materials in CycloneDX that are looked at. */
interface BillOfMaterials {
  readonly components: readonly { externalReferences?: readonly { readonly url: string }[] }[];
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
  const bill = withoutFiles(JSON.parse(npm("sbom", "--sbom-format", "cyclonedx")));
  writeFileSync(join(project, "dist/sbom.json"), `${JSON.stringify(bill, null, 2)}\n`);
  rmSync(parent, { recursive: true });
}

/** Returns a bill of materials without the places of tarballs on this machine. */
export function withoutFiles<Bill extends BillOfMaterials>(bill: Bill): Bill {
  const components = bill.components.map(({ externalReferences = [], ...component }) => ({
    ...component,
    externalReferences: externalReferences.filter(({ url }) => !url.startsWith("file:")),
  }));
  return { ...bill, components };
}

/** Returns the commands that publish what is in dist/. */
export function publishCommands(version: string): string[] {
  // npm wants a tag for what is not to be installed by default.
  const tag = version.includes("-") ? " --tag next" : "";
  return packages.map((name) => `npm publish --provenance --access public${tag} ./dist/${name}`);
}

function prepare(version: string): void {
  if (!/^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(version)) throw new Error("give a version: npm run release -- 0.2.0");
  const changed = execFileSync("git", ["status", "--porcelain"], { cwd: project, encoding: "utf8" });
  if (changed !== "") throw new Error(`commit or undo these first:\n${changed}`);
  // A published package cannot be changed: without it npm proves no origin, and nobody finds the source.
  if (readManifest(join(project, "package.json")).repository === undefined)
    throw new Error(
      "package.json does not say where the project is: give it a repository, such as https://…/plantstore",
    );
  const { version: before }: { version: string } = JSON.parse(readFileSync(join(project, manifests[0] ?? ""), "utf8"));
  for (const file of manifests) rewrite(file, (text) => releaseManifest(text, before, version));
  for (const file of filesWithNames()) rewrite(file, (text) => releaseNames(text, before, version));
  rewrite("CHANGELOG.md", (text) => releaseChangelog(text, version, new Date().toISOString().slice(0, 10)));
  run("npm", "install", "--package-lock-only", "--no-audit", "--no-fund");
  for (const script of ["check", "test", "test:package"]) run("npm", "run", "--silent", script);
  run("npm", "pack", "--pack-destination", "dist", ...packages.map((name) => `./dist/${name}`));
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
