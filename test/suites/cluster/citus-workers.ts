import { once } from "node:events";
import { appendFileSync, cpSync, openSync } from "node:fs";
import { join } from "node:path";
import { citusBuild, programsFolder } from "../citus/build.ts";
import { runSql } from "../../support/plants/postgres-server.ts";
import type { Machine } from "./network.ts";
import { createRoleSql } from "./node.ts";

/** Copies Citus to a folder that the database user can read, and returns the folder of the programs. */
export function copyCitus(folder: string): string {
  const built = citusBuild();
  if (built === undefined) throw new Error('Citus is not built; run "npx node test/suites/citus/build.ts"');
  cpSync(join(built, "usr"), join(folder, "usr"), { recursive: true, verbatimSymlinks: true });
  return join(folder, programsFolder);
}

/** Starts a worker on each machine. @param query - runs SQL on the coordinator, to register workers and user */
export async function addWorkers(
  machines: readonly (Machine & { readonly folder: string })[],
  programs: string,
  query: (sql: string) => Promise<unknown>,
): Promise<void> {
  await Promise.all(machines.map((machine) => startWorker(machine, machine.folder, programs)));
  for (const { name } of machines) await query(`SELECT citus_add_node('${name}', 5432)`);
  await query(createRoleSql("plantstore"));
  await query("ALTER DATABASE plantstore OWNER TO plantstore");
}

async function startWorker(machine: Machine, folder: string, programs: string): Promise<void> {
  const data = join(folder, "data");
  const output = openSync(join(folder, "postgres.log"), "a");
  const start = (program: string, ...args: readonly string[]) =>
    machine.start([join(programs, program), "-D", data, ...args], { environment: {}, output, asOwner: true });
  await once(start("initdb", "-A", "trust", "-U", "postgres", "-E", "UTF8"), "exit");
  appendFileSync(join(data, "pg_hba.conf"), "host all all samenet trust\n");
  const settings = ["shared_preload_libraries=citus", "listen_addresses=*", "max_prepared_transactions=200"];
  const options = settings.map((setting) => `-c ${setting}`).join(" ");
  await once(start("pg_ctl", "-w", "-l", join(data, "log"), "-o", `-k ${data} ${options}`, "start"), "exit");
  const server = `host=${machine.clusterAddress}&user=postgres`;
  await runSql(`postgres:///postgres?${server}`, "CREATE DATABASE plantstore");
  await runSql(`postgres:///plantstore?${server}`, "CREATE EXTENSION citus");
}
