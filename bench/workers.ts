import { shareConnections, type SharedPort } from "../packages/gateway/src/index.ts";
import type { WorkerFigures } from "./figures.ts";
import type { Load } from "./load/load.ts";
import { hasTool, runAnywhere } from "./load/tool.ts";
import { wrkLoad } from "./load/wrk.ts";
import type { RunningServer } from "./running-server.ts";
import type { Scenario, Subject } from "./scenarios.ts";
import { startAnywhere } from "./server-process.ts";
import { median } from "./summary.ts";

/** Processes that share the load, as `plantstore serve --workers` has them: one for each core of a small machine. */
const workers = 2;

const turns = 10;
const turnS = 1;
const warmUpS = 2;

/** Processes that are loaded together, and the port that each part of the load goes to. */
interface Group {
  readonly servers: readonly RunningServer[];
  readonly ports: readonly number[];
}

/**
 * Measures what a call costs several processes on one port, compared with one that gets the same load by turns, and
 * with as many that each have a port and a part of the load to themselves.
 *
 * Nothing is on a core of its own, so processes and load are in each other's way, and throughput says nothing: what
 * counts is how much more CPU time a call costs, and how much of that is due to the port that is shared. Returns
 * `undefined` without wrk.
 */
export async function measureWorkers({ shape }: Scenario, subject: Subject): Promise<WorkerFigures | undefined> {
  if (!hasTool("wrk")) return undefined;
  const load = wrkLoad({ ...shape, connections: shape.connections / workers }, runAnywhere);
  const started: RunningServer[] = [];
  const shared = await shareConnections();
  try {
    const start = async (sharing?: SharedPort): Promise<RunningServer> => {
      const environment = { ...subject.environment, ...(sharing && { HANDED_OVER: "on" }) };
      const server = await startAnywhere(subject.program, environment, (child) => sharing?.handTo(child));
      started.push(server);
      return server;
    };
    const one = groupOf([await start()]);
    const together: RunningServer[] = [];
    while (together.length < workers) together.push(await start(shared));
    const apart: RunningServer[] = [];
    while (apart.length < workers) apart.push(await start());
    const [timesOne, apartTimesOne] = await compare([one, groupOf(together), groupOf(apart)], load);
    return { workers, timesOne: median(timesOne), apartTimesOne: median(apartTimesOne) };
  } finally {
    for (const server of started) await server.stop();
    await shared.drain();
  }
}

/** As many parts of the load as there are workers, over the ports in turn. */
function groupOf(servers: readonly RunningServer[]): Group {
  const ports = Array.from({ length: workers }, (_, at) => servers[at % servers.length]?.port ?? 0);
  return { servers, ports };
}

/** Returns what a call costs each of the other groups as a multiple of what it costs the first, turn by turn. */
async function compare(groups: readonly [Group, Group, Group], load: Load): Promise<[number[], number[]]> {
  for (const group of groups) await cpuUsOf(group, load, warmUpS);
  const ratios: [number[], number[]] = [[], []];
  for (let turn = 0; turn < turns; turn++) {
    const seen = new Map<Group, number>();
    // In the opposite order every other time.
    for (const group of turn % 2 === 0 ? groups : groups.toReversed())
      seen.set(group, await cpuUsOf(group, load, turnS));
    const [one = 0, ...others] = groups.map((group) => seen.get(group) ?? 0);
    ratios.forEach((all, at) => all.push((others[at] ?? 0) / one));
  }
  return ratios;
}

/** Loads a group, and returns the CPU time of all its processes for a request. */
async function cpuUsOf({ servers, ports }: Group, load: Load, seconds: number): Promise<number> {
  const used = async (): Promise<number> => {
    const usages = await Promise.all(servers.map((server) => server.usage()));
    return usages.reduce((sum, { cpuUs }) => sum + cpuUs, 0);
  };
  const before = await used();
  const parts = await Promise.all(ports.map((port) => load(port, seconds)));
  const after = await used();
  let answered = 0;
  for (const { requests, failures } of parts) {
    if (failures > 0) throw new Error(`${failures} of ${requests} requests failed`);
    answered += requests;
  }
  return (after - before) / answered;
}
