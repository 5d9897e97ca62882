/**
 * Estimates the machines for a store from the measured costs. Run the program as `npx node bench/scale/plan.ts --plants
 * 1e8 --deletions 1e5 --days 90`, with `--cores 16 --memory 64 --disk 4 --network 10` (GB, TB, Gbit/s) for other
 * machines.
 */
import { readFigures } from "../../protoport/bench/figures.ts";
import { numberFlags } from "../../protoport/bench/options.ts";
import { type Costs, coordinatorUsAt, readCosts, serverUsAt, walBytesAt, workersUsAt } from "./costs.ts";

/** A store's constant load. */
export interface Load {
  readonly plants: number;
  readonly deletionsPerS: number;
  /** Number of days for which records are kept. */
  readonly days: number;
}

/** A machine type. */
export interface Machine {
  readonly cores: number;
  readonly memoryGb: number;
  readonly diskTb: number;
  readonly networkGbit: number;
}

/** The plans' machines in bench/README.md. */
export const usualMachine: Machine = { cores: 16, memoryGb: 64, diskTb: 4, networkGbit: 10 };

/** The resource that the database machines exhaust first. */
export type Limit = "disk" | "cores" | "replay" | "network" | "memory";

/** The machines that a load requires. */
export interface Plan {
  /** Number of service processes. Each process uses {@link busyMax} of a core. */
  readonly processes: number;
  /**
   * Number of database servers that share the plants. A single server is PostgreSQL, and several servers are Citus
   * workers.
   */
  readonly workers: number;
  /** Number of deletions per batch. `latencyMs` is a batch's duration. */
  readonly batch: number;
  readonly latencyMs: number;
  /** Numbers of busy cores in the service, in all database servers that share the plants, and in the coordinator. */
  readonly cores: { readonly service: number; readonly workers: number; readonly coordinator: number };
  /** Terabytes for one copy of all data. `walMbPerS` is the rate of the write-ahead log from all servers. */
  readonly diskTb: number;
  readonly walMbPerS: number;
  /** The resource that a single PostgreSQL exhausts first, and its use as a multiple of the limit. */
  readonly first: { readonly limit: Limit; readonly times: number };
  /** The coordinator's connections or CPU time as a multiple of the limit, or 0 without a coordinator. */
  readonly coordinatorTimes: number;
  /** Numbers of machines, including standbys and a spare machine for the service. */
  readonly machines: { readonly service: number; readonly database: number; readonly coordinator: number };
}

/** A plan's assumptions. */
export const assumed = {
  /** The highest utilisation of a core, disk or network. */
  busyMax: 0.7,
  /** Milliseconds for a commit, with a round trip and an fsync on the primary and on a standby nearby. */
  commitMs: 3,
  /** Number of copies of the data, on a primary and two standbys. */
  copies: 3,
  /** Number of shards per worker. With several shards, workers can be added without splitting shards. */
  shardsOfWorker: 4,
  /** Maximum number of connections that a coordinator serves well. */
  connectionsMax: 2_000,
  /** Number of pages that a disk reads and writes at random per second. */
  diskPagesPerS: 200_000,
  checkpointMinutes: 15,
  /** The share of memory that caches pages. */
  cacheShare: 0.6,
} as const;

const { busyMax, commitMs, copies, shardsOfWorker, connectionsMax, diskPagesPerS, checkpointMinutes, cacheShare } =
  assumed;
/** The store's limits. */
const [batchMax, batchesOfProcess] = [1_024, 2];
/** Maximum number of workers in a plan. */
const workersMax = 10_000;
const daySeconds = 86_400;

/** Returns the plan for a load. */
export function planFor(costs: Costs, load: Load, machine: Machine = usualMachine): Plan {
  const serviceCores = (load.deletionsPerS * (costs.restUs + costs.storeUs)) / 1e6;
  const processes = Math.max(2, Math.ceil(serviceCores / busyMax));
  const sharesOf = (count: number): Shares => sharesWith(costs, load, machine, { processes, workers: count });
  const alone = sharesOf(1);
  // Data is distributed evenly over the disks.
  let workers = Math.max(1, Math.ceil(bytesOf(costs, load) / (machine.diskTb * 1e12 * busyMax)));
  while (workers < workersMax && tightestLimit(sharesOf(workers).limits).times > 1) workers++;
  const { batch, latencyMs, workersCores, coordinatorCores, walMbPerS } = sharesOf(workers);
  return {
    processes,
    workers,
    batch,
    latencyMs,
    cores: { service: serviceCores, workers: workersCores, coordinator: coordinatorCores },
    diskTb: bytesOf(costs, load) / 1e12,
    walMbPerS,
    first: tightestLimit(alone.limits),
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
  /** The use of each resource, as a multiple of a database machine's capacity. */
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
  // On a busy coordinator, deletions wait longer, so batches grow until the coordinator's CPU time is sufficient.
  while (coordinatorCoresAt(batch) > machine.cores * busyMax && batch < batchMax) {
    batch *= 1.01;
    latencyMs = (batch * lanes * 1_000) / deletionsPerS;
  }
  const workersCores = (deletionsPerS * serverUs(batch)) / 1e6;
  // A partition is for one day. On Citus, all records have one index.
  const records = perS * daySeconds * (isSpread ? days : 1);
  const wal = walBytesAt(costs, { deletions: perS * checkpointMinutes * 60, plants, records });
  const hotBytes = plants * (costs.plantTableBytes + costs.plantIndexBytes) + records * costs.recordIndexBytes;
  const missed = 1 - Math.min(1, (machine.memoryGb * 1e9 * cacheShare) / hotBytes);
  // For each deletion, the plant's page and its pages in the two indexes are read, and later written.
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

/** Returns a lane's batch size at a deletion rate, and a batch's duration. */
function batchOf(perSOfLane: number, serverUs: (batch: number) => number): { batch: number; latencyMs: number } {
  let [batch, latencyMs] = [1, commitMs];
  // A larger batch takes longer, and more deletions arrive in this time, so the iteration converges.
  for (let step = 0; step < 200; step++) {
    latencyMs = commitMs + (serverUs(batch) * batch) / 1_000;
    batch = Math.min(batchMax, Math.max(1, (perSOfLane * latencyMs) / 1_000));
  }
  return { batch, latencyMs };
}

function bytesOf({ plantTableBytes, plantIndexBytes, recordBytes }: Costs, load: Load): number {
  return load.plants * (plantTableBytes + plantIndexBytes) + load.deletionsPerS * load.days * daySeconds * recordBytes;
}

function tightestLimit(limits: Shares["limits"]): Plan["first"] {
  return limits.reduce((one, other) => (other.times > one.times ? other : one));
}

if (import.meta.main) {
  const flags = { plants: 1e8, deletions: 1e5, days: 90, cores: 16, memory: 64, disk: 4, network: 10 };
  const { plants, deletions, days, cores, memory, disk, network } = numberFlags(flags);
  const costs = readCosts(readFigures());
  if (costs === undefined) throw new Error('no recorded costs; run "npx node bench/scale/measure.ts --record"');
  const machine = { cores, memoryGb: memory, diskTb: disk, networkGbit: network };
  console.log(planFor(costs, { plants, deletionsPerS: deletions, days }, machine));
}
