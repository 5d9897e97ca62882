import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { CitusCluster } from "../../test/suites/citus/citus-cluster.ts";
import type { PostgresServer } from "../../test/support/plants/postgres-server.ts";
import { tickUs } from "../../protoport/bench/cores.ts";

// Maximum time in ms until the server notices that a connection was closed. Before, the connection's process is in
// neither sum.
const endingMs = 200;

/**
 * Returns the CPU time that all processes of a PostgreSQL server have used, including those that have exited, in µs.
 */
export async function cpuUsOfServer({ socketFolder }: PostgresServer): Promise<number> {
  const [first] = readFileSync(join(socketFolder, "data", "postmaster.pid"), "utf8").split("\n");
  return await cpuUsOfChildren(Number(first));
}

/** Returns the CPU time of the PostgreSQL server with this main process. */
async function cpuUsOfChildren(first: number): Promise<number> {
  await sleep(endingMs);
  const server = statOf(String(first));
  const children = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && statOf(name).parent === String(first));
  return children.reduce((sum, pid) => sum + statOf(pid).ownUs, server.ownUs + server.endedUs);
}

/** Returns the CPU time of a cluster's coordinator, and of all its workers. */
export async function cpuUsOfCitus({ coordinator, workers }: CitusCluster): Promise<readonly [number, number]> {
  const [first = 0, ...others] = await Promise.all([coordinator, ...workers].map(({ pid }) => cpuUsOfChildren(pid)));
  return [first, others.reduce((sum, us) => sum + us, 0)];
}

/** Returns the CPU time of the programs that this process has run and that have exited, in µs. */
export function cpuUsOfEnded(): number {
  return statOf("self").endedUs;
}

/**
 * Returns a process's parent, its CPU time, and the CPU time of its exited children, in µs. Returns zeros if the
 * process has exited.
 */
function statOf(pid: string): {
  readonly parent: string | undefined;
  readonly ownUs: number;
  readonly endedUs: number;
} {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "latin1")
      .replace(/^.*\) /, "")
      .split(" ");
    const us = (first: number): number => (Number(fields[first]) + Number(fields[first + 1])) * tickUs;
    return { parent: fields[1], ownUs: us(11), endedUs: us(13) };
  } catch {
    return { parent: undefined, ownUs: 0, endedUs: 0 };
  }
}
