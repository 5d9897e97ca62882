import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { hasProgram } from "../../../protoport/testing/src/process/tools-folder.ts";

/** Debian's package for each program. */
// oxfmt-ignore
const packages: Readonly<Record<string, string>> = {
  etcd: "etcd-server", patroni: "patroni", haproxy: "haproxy", ip: "iproute2", unshare: "util-linux",
  nsenter: "util-linux", setpriv: "util-linux", mount: "mount",
};

const postgresPrograms = ["postgres", "initdb", "pg_controldata", "pg_basebackup", "pg_rewind", "pg_ctl", "pg_isready"];

/** Returns a message for each cluster requirement that this machine lacks. */
export function findMissing(): string[] {
  const missing = Object.entries(packages)
    .filter(([program]) => !hasProgram(program))
    .map(([program, name]) => `${program} is missing (on Debian: apt-get install ${name})`);
  if (postgresFolder() === undefined)
    missing.push("PostgreSQL with pg_rewind is missing (on Debian: apt-get install postgresql)");
  if (process.getuid?.() !== 0) missing.push("network namespaces require root");
  return missing;
}

/** The folder with PostgreSQL's programs, either the newest that Debian installed, or one on PATH. */
export function postgresFolder(): string | undefined {
  const debian = "/usr/lib/postgresql";
  const versions = existsSync(debian) ? readdirSync(debian).toSorted((one, other) => Number(other) - Number(one)) : [];
  const path = (process.env["PATH"] ?? "").split(":");
  const folders = [...versions.map((version) => join(debian, version, "bin")), ...path];
  return folders.find((folder) => postgresPrograms.every((program) => existsSync(join(folder, program))));
}
