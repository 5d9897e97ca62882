import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

/**
 * The folder with `initdb` and `postgres`: the system's, or else those of the development dependency.
 *
 * @throws Error when there are none
 */
export function postgresBinaries(): string {
  const folder = [...systemFolders()].find((path) => existsSync(join(path, "initdb")));
  if (folder === undefined) throw new Error("these tests need the server binaries of PostgreSQL: initdb and postgres");
  return folder;
}

function* systemFolders(): Generator<string> {
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
}
