import { execFileSync } from "node:child_process";
import { cpSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { toolsFolder } from "../../../protoport/testing/src/process/tools-folder.ts";

// `node test/suites/citus/build.ts [REPOSITORY]` builds Citus from its source for Debian's PostgreSQL, in two minutes.
// Keeps the build next to a copy of the server's programs, outside the checkout and the system. Needed once.

const version = "v13.2.2";
const postgres = "15";
const root = join(toolsFolder("citus"), version);
export const programsFolder: string = join("usr/lib/postgresql", postgres, "bin");
/** The build's folder, or `undefined` if it does not exist. */
export const citusBuild = (): string | undefined => (existsSync(join(root, programsFolder)) ? root : undefined);

function build(): void {
  const making = `${root}-making`;
  rmSync(making, { recursive: true, force: true });
  const source = join(making, "source");
  const [repository = "https://github.com/citusdata/citus"] = process.argv.slice(2);
  run(making, "git", ["clone", "-q", "--depth", "1", "-b", version, repository, source]);
  // Some PostgreSQL 15 releases have a function with this name.
  for (const name of ["include/pg_version_compat.h", "backend/distributed/commands/serialize_distributed_ddls.c"]) {
    const file = join(source, "src", name);
    writeFileSync(file, readFileSync(file, "utf8").replaceAll(/\bhave_createdb_privilege\b/g, "citus_$&"));
  }
  // A clone writes its files in any order, and `make` would regenerate a script that is older than its source.
  run(source, "touch", ["configure"]);
  run(source, "./configure", ["PG_CONFIG=/usr/bin/pg_config", "--without-libcurl"]);
  run(source, "make", ["-j2", "with_llvm=no"]);
  // The programs find their libraries relative to their own path.
  for (const part of ["usr/lib/postgresql", "usr/share/postgresql"])
    cpSync(join("/", part, postgres), join(making, part, postgres), { recursive: true, verbatimSymlinks: true });
  run(source, "make", ["install", "with_llvm=no", `DESTDIR=${making}`]);
  rmSync(source, { recursive: true });
  renameSync(making, root);
}

function run(folder: string, program: string, args: readonly string[]): void {
  execFileSync(program, args, { cwd: existsSync(folder) ? folder : "/", stdio: ["ignore", "ignore", "inherit"] });
}

if (import.meta.main && citusBuild() === undefined) build();
