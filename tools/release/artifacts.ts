import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { packageFolders, projectFolder as project, readManifest } from "../../protoport/tools/build/manifest.ts";

/**
 * The folder for a release's files, which are a tarball for each package, sbom.json, RELEASE_NOTES.md and SHA256SUMS.
 */
export const releaseFolder: string = join(project, "dist/release");

/** Maximum size of the output from `npm sbom`, which is half a megabyte today. */
const outputLimitBytes = 16 * 1024 * 1024;

/** The folders in dist/ that become packages. Dependencies come first. */
const folders = [...packageFolders.keys()].map((name) => `./dist/${name}`);

/** Returns the package names, in the order of `folders`. */
function packageNames(): string[] {
  return [...packageFolders.values()].map((folder) => readManifest(join(project, folder, "package.json")).name);
}

/** Returns the name of the tarball that npm packs for a package. */
function tarballName(name: string, version: string): string {
  return `${name.replace("@", "").replace("/", "-")}-${version}.tgz`;
}

/** Writes a release's files from the output of `npm run build`. */
export function makeArtifacts(version: string, notes: string): void {
  execFileSync("npm", ["pack", "--silent", "--pack-destination", releaseFolder, ...folders], {
    cwd: project,
    stdio: ["ignore", "ignore", "inherit"],
  });
  writeFileSync(join(releaseFolder, "sbom.json"), billOfMaterials(version));
  writeFileSync(join(releaseFolder, "RELEASE_NOTES.md"), notes);
  writeFileSync(join(releaseFolder, "SHA256SUMS"), checksums(releaseFolder));
}

/** Returns a line for each file in a folder, as `sha256sum --check` reads it. */
function checksums(folder: string): string {
  const lines = readdirSync(folder)
    .toSorted()
    .map(
      (name) =>
        `${createHash("sha256")
          .update(readFileSync(join(folder, name)))
          .digest("hex")}  ${name}\n`,
    );
  return lines.join("");
}

/** Returns the bill of materials for an installation with all packages, in the CycloneDX format. */
function billOfMaterials(version: string): string {
  const parent = mkdtempSync(join(tmpdir(), "installation-"));
  // npm names the installation after its folder.
  const folder = join(parent, "plantstore-installation");
  mkdirSync(folder);
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({ name: "plantstore-installation", version, private: true }),
  );
  const npm = (...args: readonly string[]): string =>
    execFileSync("npm", args, { cwd: folder, encoding: "utf8", maxBuffer: outputLimitBytes });
  try {
    const tarballs = packageNames().map((name) => join(releaseFolder, tarballName(name, version)));
    npm("install", "--no-audit", "--no-fund", "--ignore-scripts", ...tarballs);
    return withoutFiles(npm("sbom", "--sbom-format", "cyclonedx"));
  } finally {
    rmSync(parent, { recursive: true });
  }
}

/** Returns a bill of materials without the tarball paths on this machine. */
export function withoutFiles(bill: string): string {
  const others = JSON.parse(bill, (_, value: unknown) =>
    Array.isArray(value) ? value.filter((each) => !String(each?.url).startsWith("file:")) : value,
  );
  return `${JSON.stringify(others, null, 2)}\n`;
}

type Command = readonly [program: string, ...args: string[]];

/** The commands that publish one package in a release. */
export interface Publication {
  /** The package's name and version, such as `plantstore@0.2.0`. */
  readonly id: string;
  /** A command that prints the version if the registry has it. Otherwise, the command prints nothing or fails. */
  readonly find: Command;
  /** A command that publishes the tarball with its provenance. */
  readonly publish: Command;
}

/**
 * Returns the commands that publish a version's packages. Dependencies come first.
 *
 * @param folder - the folder with the tarballs. The default is {@link releaseFolder}
 */
export function publicationsOf(version: string, folder: string = releaseFolder): Publication[] {
  // npm requires a tag for a version that is not to be installed by default.
  const tag = version.includes("-") ? ["--tag", "next"] : [];
  return packageNames().map((name) => {
    const id = `${name}@${version}`;
    const tarball = join(folder, tarballName(name, version));
    return {
      id,
      find: ["npm", "view", id, "version"],
      publish: ["npm", "publish", "--provenance", "--access", "public", ...tag, tarball],
    };
  });
}
