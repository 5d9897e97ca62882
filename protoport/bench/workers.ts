import type { WorkerFigures } from "./figures.ts";
import type { Load } from "./load/load.ts";
import { hasTool, runAnywhere } from "./load/tool.ts";
import { wrkLoad } from "./load/wrk.ts";
import type { RunningServer } from "./running-server.ts";
import type { Scenario, Subject } from "./scenarios.ts";
import { startAnywhere, startWorker } from "./server-process.ts";
import { median } from "./summary.ts";

/** Number of processes that share the load, which is one for each core of a machine with two cores. */
const workers = 2;

const turns = 10;
const turnS = 1;
const warmUpS = 2;

/** Processes that are loaded together, and the port for each part of the load. */
interface Group {
  readonly servers: readonly RunningServer[];
  readonly ports: readonly number[];
}

/**
 * Measures the cost of a call on several processes that share a port. The cost is compared with the cost on a single
 * process under the same load, and with the cost on as many processes that each have a separate port and part of the
 * load.
 *
 * No process has a reserved core, so processes and load compete, and throughput is not meaningful. The result shows how
 * much more CPU time a call costs, and how much of the cost is due to the shared port. Returns `undefined` without wrk.
 */
export async function measureWorkers({ shape }: Scenario, subject: Subject): Promise<WorkerFigures | undefined> {
  if (!hasTool("wrk")) return undefined;
  const load = wrkLoad({ ...shape, connections: shape.connections / workers }, runAnywhere);
  const started: RunningServer[] = [];
  const start = async (startOne: typeof startAnywhere): Promise<RunningServer> => {
    const server = await startOne(subject.program, subject.environment);
    started.push(server);
    return server;
  };
  try {
    const one = groupOf([await start(startAnywhere)]);
    const together: RunningServer[] = [];
    while (together.length < workers) together.push(await start(startWorker));
    const apart: RunningServer[] = [];
    while (apart.length < workers) apart.push(await start(startAnywhere));
    const [timesOne, apartTimesOne] = await compare([one, groupOf(together), groupOf(apart)], load);
    return { workers, timesOne: median(timesOne), apartTimesOne: median(apartTimesOne) };
  } finally {
    for (const server of started) await server.stop();
  }
}

/** Returns a group that divides the load into as many parts as there are workers, distributed over the ports. */
function groupOf(servers: readonly RunningServer[]): Group {
  const ports = Array.from({ length: workers }, (_, at) => servers[at % servers.length]?.port ?? 0);
  return { servers, ports };
}

/** Returns the cost of a call in each other group, as a multiple of the first group's cost, by turn. */
async function compare(groups: readonly [Group, Group, Group], load: Load): Promise<[number[], number[]]> {
  for (const group of groups) await cpuUsOf(group, load, warmUpS);
  const ratios: [number[], number[]] = [[], []];
  for (let turn = 0; turn < turns; turn++) {
    const cpuUs = new Map<Group, number>();
    // The order is reversed in every second turn.
    for (const group of turn % 2 === 0 ? groups : groups.toReversed())
      cpuUs.set(group, await cpuUsOf(group, load, turnS));
    const [one = 0, ...others] = groups.map((group) => cpuUs.get(group) ?? 0);
    ratios.forEach((all, at) => all.push((others[at] ?? 0) / one));
  }
  return ratios;
}

/** Loads a group, and returns the CPU time per request in all its processes. */
async function cpuUsOf({ servers, ports }: Group, load: Load, seconds: number): Promise<number> {
  const usedUs = async (): Promise<number> => {
    const usages = await Promise.all(servers.map((server) => server.usage()));
    return usages.reduce((sum, { cpuUs }) => sum + cpuUs, 0);
  };
  const before = await usedUs();
  const parts = await Promise.all(ports.map((port) => load(port, seconds)));
  const after = await usedUs();
  let total = 0;
  for (const { requests, failures } of parts) {
    if (failures > 0) throw new Error(`${failures} of ${requests} requests failed`);
    total += requests;
  }
  return (after - before) / total;
}
