import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import type { Percentiles } from "./load/load.ts";

/** Maximum difference between the ratios in two rounds, or on two machines, that is not reported. */
export const roundsDifferMax = 0.15;

/** This project's server. */
export const ownName = "plantstore";

/** This project's server on node:http and node:http2 instead of the project's engine. */
export const ownNodeName = "plantstore on node's HTTP";

/** This project's server with grpc-js handlers. */
export const ownHandlersName = "plantstore, handlers of grpc-js";

/** This project's server on an SQLite file. All other servers keep their plants in memory. */
export const ownSqliteName = "plantstore on SQLite";

/** This project's server on an SQLite file, with the log that `plantstore serve` writes. */
export const ownLoggedName = "plantstore on SQLite, with its log";

/** The bench's results, from which the tables and the docs' pictures are generated. */
export interface Figures {
  /** Comparisons of servers in turns, by scenario. */
  readonly calls?: Readonly<Record<string, CallFigures>>;
  /** Latency at fixed rates, by protocol. */
  readonly rates?: Readonly<Record<string, readonly RateFigures[]>>;
  /** The cost of each program from process start to the first response. The first program is the floor. */
  readonly starts?: readonly StartFigures[];
  /** Resident memory after many calls, by scenario. */
  readonly memory?: Readonly<Record<string, readonly MemoryFigures[]>>;
  /** The delays of other requests by a 10 MB list, by scenario. */
  readonly stalls?: Readonly<Record<string, readonly StallFigures[]>>;
  /** The cost of calls to several processes on the same port. */
  readonly workers?: WorkerFigures | undefined;
  /** The cost of plants, deletions and their records in a database. */
  readonly scale?: ScaleFigures;
}

/** A comparison of servers in turns. */
export interface CallFigures {
  readonly measured: Measured;
  /** The servers' figures. The first server is the floor. */
  readonly servers: readonly ServerFigures[];
  /** The highest share of the server's core that other processes used in a turn. */
  readonly foreignLoad: number;
}

/** The date and the machine of a measurement. */
export interface Measured {
  /** The day, such as 2026-11-21. */
  readonly date: string;
  readonly node: string;
  readonly cores: number;
}

/** One server in a comparison, with medians over all turns. */
export interface ServerFigures {
  readonly name: string;
  readonly cpuUs: number;
  readonly leastCpuUs: number;
  readonly timesFloor: number;
  /** The lowest and the highest median ratio in a round, if they differ by more than {@link roundsDifferMax}. */
  readonly timesFloorRange?: readonly [number, number];
  /** The ratio between the two lowest CPU times. */
  readonly leastTimesFloor: number;
  readonly requestsPerS: number;
  readonly latencyUs: Percentiles;
  readonly rssIdleBytes: number;
  readonly rssLoadedBytes: number;
}

/** A server's latency at each rate with which it kept up. */
export interface RateFigures {
  readonly name: string;
  readonly steps: readonly RateStep[];
  /** The server's requests per second at saturation. */
  readonly requestsPerSMax?: number;
  /** The latency at shares of this server's own maximum, by percent. */
  readonly atShares?: Readonly<Record<string, RateStep>>;
}

/** One server's latency at one rate. */
export interface RateStep {
  readonly requestsPerS: number;
  readonly latencyUs: Percentiles;
}

/**
 * The time until a program's first response, and the resources used until the response. The figures are medians over
 * the program's starts.
 */
export interface StartFigures {
  readonly name: string;
  readonly ms: number;
  readonly timesFloor: number;
  readonly cpuMs: number;
  readonly rssBytes: number;
  readonly rssTimesFloor: number;
}

/** The time for which a small request waits on a server while a large response is encoded and sent. */
export interface StallFigures {
  readonly name: string;
  readonly ms: number;
}

/** One server's resident memory at the start, after a million calls, and after two million. */
export interface MemoryFigures {
  readonly name: string;
  readonly rssBytes: readonly number[];
}

/**
 * The cost of a REST call on several processes that share a port, compared with a single process. The figures are
 * medians over all turns.
 */
export interface WorkerFigures {
  readonly workers: number;
  /** The CPU time per call in all processes, as a multiple of the CPU time in a single process, by turn. */
  readonly timesOne: number;
  /** The multiple of a single process's CPU time for processes that each have a separate port and part of the load. */
  readonly apartTimesOne: number;
}

/**
 * The cost of plants, deletions and their records in PostgreSQL. CPU times are per deletion, and the lowest in all
 * turns.
 */
export interface ScaleFigures {
  readonly measured: Measured;
  /** The machine's load average over five minutes, which includes the measurement. */
  readonly loadAverage: number;
  /** Number of bytes for a plant in the table. `plantIndexBytes` is the number in the index. */
  readonly plantTableBytes: number;
  readonly plantIndexBytes: number;
  /** Number of bytes for a deletion record with all indexes. `recordIndexBytes` is the number in the index by plant. */
  readonly recordBytes: number;
  readonly recordIndexBytes: number;
  /** Number of bytes that a deletion adds to the write-ahead log, without page images. */
  readonly walBytes: number;
  /** The bytes in the write-ahead log after a checkpoint, with page images. */
  readonly afterCheckpoint: CheckpointFigures;
  /** CPU time per deletion in the process that replays the write-ahead log on a standby. */
  readonly replayUs: number;
  /** CPU time that a process with the store uses per deletion, without HTTP, with the largest batches. */
  readonly storeUs: number;
  /** CPU time that the database server uses for one process, by batch size. */
  readonly oneProcess: readonly BatchFigures[];
  readonly twoProcesses: BatchFigures;
  /** CPU time that the database server uses per id in a statement with a thousand ids. */
  readonly thousandUs: number;
  readonly citus?: CitusFigures;
}

/** The cost of a deletion for the database server, by mean batch size. */
export interface BatchFigures {
  readonly batch: number;
  readonly serverUs: number;
}

/** The size of the log that a deletion writes after a checkpoint, and the numbers of deletions, plants and records. */
export interface CheckpointFigures {
  readonly walBytes: number;
  readonly deletions: number;
  readonly plants: number;
  readonly records: number;
}

/** The cost of a deletion on Citus with two workers. */
export interface CitusFigures {
  readonly measured: Measured;
  readonly points: readonly CitusPoint[];
}

/** The cost with a number of shards and a batch size. The workers' CPU time is the total for both workers. */
export interface CitusPoint {
  readonly shards: number;
  readonly batch: number;
  readonly workersUs: number;
  readonly coordinatorUs: number;
}

const file = join(import.meta.dirname, "../../docs/figures.json");

/** Returns the recorded figures, or an empty object when there are none. */
export function readFigures(): Figures {
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
}

/** Records new figures, and keeps all other figures. */
export function recordFigures(part: Figures): void {
  const before = readFigures();
  const merged: Record<string, unknown> = { ...before };
  for (const [name, value] of Object.entries(part)) {
    const old: unknown = merged[name];
    merged[name] = isParts(old) && isParts(value) ? { ...old, ...value } : value;
  }
  writeFileSync(file, `${JSON.stringify(merged, shorten, 1)}\n`);
}

/** Returns the current date, Node version and core count. */
export function measuredNow(): Measured {
  const date = new Date().toISOString().slice(0, "2026-11-21".length);
  return { date, node: process.versions.node, cores: availableParallelism() };
}

function isParts(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Rounds to four digits. The difference between two runs is larger than the rounding error. */
function shorten(_: string, value: unknown): unknown {
  return typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value;
}
