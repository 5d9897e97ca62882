import type { WorkerFigures } from "./figures.ts";
import type { Load } from "./load/load.ts";
import { hasTool, runAnywhere } from "./load/tool.ts";
import { wrkLoad } from "./load/wrk.ts";
import type { RunningServer } from "./running-server.ts";
import type { Scenario, Subject } from "./scenarios.ts";
import { startAnywhere } from "./server-process.ts";
import { median } from "./summary.ts";

/** Processes that share a port, as `plantstore serve --workers` has them: one for each core of a small machine. */
const workers = 2;

const turns = 10;
const turnS = 1;
const warmUpS = 2;

/**
 * Measures what a call costs several processes on one port, compared with one that gets the same load by turns.
 *
 * Nothing is on a core of its own, so the load is in the way of both alike, and throughput says nothing: what counts is
 * that a call costs no more CPU time. Returns `undefined` without wrk.
 */
export async function measureWorkers({ shape }: Scenario, subject: Subject): Promise<WorkerFigures | undefined> {
  if (!hasTool("wrk")) return undefined;
  const load = wrkLoad(shape, runAnywhere);
  const started: RunningServer[] = [];
  try {
    const start = async (port: number): Promise<RunningServer> => {
      const server = await startAnywhere(subject.program, { ...subject.environment, PORT: String(port) });
      started.push(server);
      return server;
    };
    const one = [await start(0)];
    const all = [await start(0)];
    while (all.length < workers) all.push(await start(all[0]?.port ?? 0));
    for (const servers of [one, all]) await cpuUsOf(servers, load, warmUpS);
    const ratios: number[] = [];
    while (ratios.length < turns) {
      // In the opposite order every other time.
      const isOdd = ratios.length % 2 === 1;
      const first = await cpuUsOf(isOdd ? all : one, load, turnS);
      const second = await cpuUsOf(isOdd ? one : all, load, turnS);
      ratios.push(isOdd ? first / second : second / first);
    }
    return { workers, timesOne: median(ratios) };
  } finally {
    for (const server of started) await server.stop();
  }
}

/** Loads processes that share a port, and returns the CPU time of them all for a request. */
async function cpuUsOf(servers: readonly RunningServer[], load: Load, seconds: number): Promise<number> {
  const used = async (): Promise<number> => {
    const usages = await Promise.all(servers.map((server) => server.usage()));
    return usages.reduce((sum, { cpuUs }) => sum + cpuUs, 0);
  };
  const before = await used();
  const { requests, failures } = await load(servers[0]?.port ?? 0, seconds);
  if (failures > 0) throw new Error(`${failures} of ${requests} requests failed`);
  return ((await used()) - before) / requests;
}
