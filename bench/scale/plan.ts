/**
 * How many machines a store takes, by the measured costs: `npx node bench/scale/plan.ts --plants 1e8 --deletions 1e5
 * --days 90`, with `--cores 16 --memory 64 --disk 4 --network 10` (GB, TB, Gbit/s) for machines of another kind.
 */
import { readFigures } from "../figures.ts";
import { numberFlags } from "../options.ts";
import { type Costs, coordinatorUsAt, readCosts, serverUsAt, walBytesAt, workersUsAt } from "./costs.ts";

/** What a store is to do, day and night. */
export interface Load {
  readonly plants: number;
  readonly deletionsPerS: number;
  /** How long records are kept. */
  readonly days: number;
}

/** A kind of machine. */
export interface Machine {
  readonly cores: number;
  readonly memoryGb: number;
  readonly diskTb: number;
  readonly networkGbit: number;
}

/** The machines that the page plans with. */
export const usualMachine: Machine = { cores: 16, memoryGb: 64, diskTb: 4, networkGbit: 10 };

/** What a machine of the database has too little of first. */
export type Limit = "disk" | "cores" | "replay" | "network" | "memory";

/** What a store takes. */
export interface Plan {
  /** Processes of the service, each of them busy for {@link busyMax} of a core. */
  readonly processes: number;
  /** Servers that share the plants: 1 is one PostgreSQL, more are workers of Citus. */
  readonly workers: number;
  /** Deletions in a batch, and how long it is waited for. */
  readonly batch: number;
  readonly latencyMs: number;
  /** Busy cores: of the service, of all servers that share the plants, and of the coordinator. */
  readonly cores: { readonly service: number; readonly workers: number; readonly coordinator: number };
  /** Bytes of one copy of everything, and write-ahead log of all servers. */
  readonly diskTb: number;
  readonly walMbPerS: number;
  /** What breaks first on one PostgreSQL, and how many times too much of it that would be. */
  readonly first: { readonly limit: Limit; readonly times: number };
  /** How many times too many connections the coordinator would have, or too little time; 0 without one. */
  readonly coordinatorTimes: number;
  /** With standbys, and one of the service that may be lost. */
  readonly machines: { readonly service: number; readonly database: number; readonly coordinator: number };
}

/** What a plan takes for granted. */
export const assumed = {
  /** Of a core, disk or network, what may be in use. */
  busyMax: 0.7,
  /** A round trip, an fsync, and the same of a standby nearby. */
  commitMs: 3,
  /** A primary and two standbys. */
  copies: 3,
  /** So many times the workers can be doubled before a shard has to be split. */
  shardsOfWorker: 4,
  /** Connections that a coordinator serves well. */
  connectionsMax: 2_000,
  /** Pages that a disk reads and writes at random, in a second. */
  diskPagesPerS: 200_000,
  checkpointMinutes: 15,
  /** Of the memory, what keeps pages. */
  cacheShare: 0.6,
} as const;

const { busyMax, commitMs, copies, shardsOfWorker, connectionsMax, diskPagesPerS, checkpointMinutes, cacheShare } =
  assumed;
/** As the store has them. */
const [batchMax, batchesOfProcess] = [1_024, 2];
/** More would not be a plan. */
const workersMax = 10_000;
const daySeconds = 86_400;

/** Returns what a load takes. */
export function planFor(costs: Costs, load: Load, machine: Machine = usualMachine): Plan {
  const serviceCores = (load.deletionsPerS * (costs.restUs + costs.storeUs)) / 1e6;
  const processes = Math.max(2, Math.ceil(serviceCores / busyMax));
  const sharesOf = (count: number): Shares => sharesWith(costs, load, machine, { processes, workers: count });
  const alone = sharesOf(1);
  // Disks are shared evenly, and so known.
  let workers = Math.max(1, Math.ceil(bytesOf(costs, load) / (machine.diskTb * 1e12 * busyMax)));
  while (workers < workersMax && most(sharesOf(workers).limits).times > 1) workers++;
  const { batch, latencyMs, workersCores, coordinatorCores, walMbPerS } = sharesOf(workers);
  return {
    processes,
    workers,
    batch,
    latencyMs,
    cores: { service: serviceCores, workers: workersCores, coordinator: coordinatorCores },
    diskTb: bytesOf(costs, load) / 1e12,
    walMbPerS,
    first: most(alone.limits),
    coordinatorTimes:
      workers === 1
        ? 0
        : Math.max((processes * workers) / connectionsMax, coordinatorCores / (machine.cores * busyMax)),
    machines: {
      service: Math.ceil(processes / machine.cores) + 1,
      database: workers * copies,
      coordinator: workers === 1 ? 0 : copies,
    },
  };
}

interface Shares {
  readonly batch: number;
  readonly latencyMs: number;
  readonly workersCores: number;
  readonly coordinatorCores: number;
  readonly walMbPerS: number;
  /** How much each takes of what a machine of the database has. */
  readonly limits: readonly Plan["first"][];
}

interface Shape {
  readonly processes: number;
  readonly workers: number;
}

function sharesWith(costs: Costs, load: Load, machine: Machine, { processes, workers }: Shape): Shares {
  const { deletionsPerS, days } = load;
  const perS = deletionsPerS / workers;
  const plants = load.plants / workers;
  const isSpread = workers > 1;
  const lanes = processes * (isSpread ? workers : batchesOfProcess);
  const serverUs = (batch: number): number =>
    isSpread ? workersUsAt(costs, batch, shardsOfWorker) : serverUsAt(costs, batch);
  const coordinatorCoresAt = (batch: number): number =>
    isSpread ? (deletionsPerS * coordinatorUsAt(costs, batch)) / 1e6 : 0;
  let { batch, latencyMs } = batchOf(deletionsPerS / lanes, serverUs);
  // A coordinator without time lets deletions wait, and so its batches grow until it has enough.
  while (coordinatorCoresAt(batch) > machine.cores * busyMax && batch < batchMax) {
    batch *= 1.01;
    latencyMs = (batch * lanes * 1_000) / deletionsPerS;
  }
  const workersCores = (deletionsPerS * serverUs(batch)) / 1e6;
  // Partitions are of a day, and on Citus of as many as make twelve of them.
  const records = perS * daySeconds * (isSpread ? Math.ceil(days / 12) : 1);
  const wal = walBytesAt(costs, { deletions: perS * checkpointMinutes * 60, plants, records });
  const hotBytes = plants * (costs.plantTableBytes + costs.plantIndexBytes) + records * costs.recordIndexBytes;
  const missed = 1 - Math.min(1, (machine.memoryGb * 1e9 * cacheShare) / hotBytes);
  // The page of a plant, and those of the two indexes: each is read, and written in the end.
  const diskPages = perS * 3 * 2 * missed;
  return {
    batch,
    latencyMs,
    workersCores,
    coordinatorCores: coordinatorCoresAt(batch),
    walMbPerS: (deletionsPerS * wal) / 1e6,
    limits: [
      { limit: "disk", times: bytesOf(costs, load) / workers / (machine.diskTb * 1e12 * busyMax) },
      { limit: "cores", times: workersCores / workers / (machine.cores * busyMax) },
      { limit: "replay", times: (perS * costs.replayUs) / 1e6 / busyMax },
      { limit: "network", times: (perS * wal * 8 * (copies - 1)) / (machine.networkGbit * 1e9 * busyMax) },
      { limit: "memory", times: diskPages / (diskPagesPerS * busyMax) },
    ],
  };
}

/** The batch of a lane to which so many come while one is committed, and how long that takes. */
function batchOf(perSOfLane: number, serverUs: (batch: number) => number): { batch: number; latencyMs: number } {
  let [batch, latencyMs] = [1, commitMs];
  // It grows with the time that it takes, and settles.
  for (let step = 0; step < 200; step++) {
    latencyMs = commitMs + (serverUs(batch) * batch) / 1_000;
    batch = Math.min(batchMax, Math.max(1, (perSOfLane * latencyMs) / 1_000));
  }
  return { batch, latencyMs };
}

function bytesOf({ plantTableBytes, plantIndexBytes, recordBytes }: Costs, load: Load): number {
  return load.plants * (plantTableBytes + plantIndexBytes) + load.deletionsPerS * load.days * daySeconds * recordBytes;
}

function most(limits: Shares["limits"]): Plan["first"] {
  return limits.reduce((one, other) => (other.times > one.times ? other : one));
}

if (import.meta.main) {
  const flags = { plants: 1e8, deletions: 1e5, days: 90, cores: 16, memory: 64, disk: 4, network: 10 };
  const { plants, deletions, days, cores, memory, disk, network } = numberFlags(flags);
  const costs = readCosts(readFigures());
  if (costs === undefined) throw new Error("nothing was recorded: npx node bench/scale/measure.ts --record");
  const machine = { cores, memoryGb: memory, diskTb: disk, networkGbit: network };
  console.log(planFor(costs, { plants, deletionsPerS: deletions, days }, machine));
}
