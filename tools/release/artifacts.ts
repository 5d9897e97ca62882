import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { projectFolder as project, protoportPackages } from "../../protoport/tools/build/manifest.ts";
import { tarballName } from "../../protoport/tools/build/publications.ts";
import { packageNames } from "./texts.ts";

/**
 * The folder for a release's files, which are a tarball for each package, sbom.json, RELEASE_NOTES.md and SHA256SUMS.
 */
export const releaseFolder: string = join(project, "dist/release");

/** Maximum size of the output from `npm sbom`, which is half a megabyte today. */
const outputLimitBytes = 16 * 1024 * 1024;

/** The folders in dist/ that become packages. Dependencies come first. */
const folders = [...protoportPackages, "plantstore"].map((name) => `./dist/${name}`);

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
