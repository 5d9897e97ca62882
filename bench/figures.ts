import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import type { Percentiles } from "./load/load.ts";

/** The share by which the ratios of two rounds, or of two machines, may differ before the difference is reported. */
export const roundsDifferMax = 0.15;

/** The name of this project's server. */
export const ownName = "plantstore";

/** The name of this project's server on node:http and node:http2 instead of its engine. */
export const ownNodeName = "plantstore on node's HTTP";

/** The name of this project's server with grpc-js handlers. */
export const ownHandlersName = "plantstore, handlers of grpc-js";

/** The name of this project's server on an SQLite file. The others keep their plants in memory. */
export const ownSqliteName = "plantstore on SQLite";

/** The name of this project's server on an SQLite file, with the log of `plantstore serve`. */
export const ownLoggedName = "plantstore on SQLite, with its log";

/** The bench's results, from which the tables and the docs' pictures are generated. */
export interface Figures {
  /** Comparisons by turns, by their scenario's name. */
  readonly calls?: Readonly<Record<string, CallFigures>>;
  /** Latency at fixed rates, by protocol. */
  readonly rates?: Readonly<Record<string, readonly RateFigures[]>>;
  /** From the start of the process to the first response. The first program is the floor. */
  readonly starts?: readonly StartFigures[];
  /** Resident memory after many calls, by the scenario's name. */
  readonly memory?: Readonly<Record<string, readonly MemoryFigures[]>>;
  /** How long a list of 10 MB delays other requests, by the scenario's name. */
  readonly stalls?: Readonly<Record<string, readonly StallFigures[]>>;
  /** Several processes on one port. */
  readonly workers?: WorkerFigures | undefined;
  /** The costs of plants, deletions and their records in a database. */
  readonly scale?: ScaleFigures;
}

/** One comparison by turns. */
export interface CallFigures {
  readonly measured: Measured;
  /** The first one is the floor. */
  readonly servers: readonly ServerFigures[];
  /** The highest share of the server's core that other processes used in a turn. */
  readonly foreignLoad: number;
}

/** When and where something was measured. */
export interface Measured {
  /** The day, as 2026-11-21. */
  readonly date: string;
  readonly node: string;
  readonly cores: number;
}

/** One server in a comparison: medians over all turns. */
export interface ServerFigures {
  readonly name: string;
  readonly cpuUs: number;
  readonly leastCpuUs: number;
  readonly timesFloor: number;
  /** The lowest and a round's highest median, if they differ by more than {@link roundsDifferMax}. */
  readonly timesFloorRange?: readonly [number, number];
  /** The ratio of the two least CPU times. */
  readonly leastTimesFloor: number;
  readonly requestsPerS: number;
  readonly latencyUs: Percentiles;
  readonly rssIdleBytes: number;
  readonly rssLoadedBytes: number;
}

/** One server's latency at each rate that it kept up with. */
export interface RateFigures {
  readonly name: string;
  readonly steps: readonly RateStep[];
  /** The requests per second at saturation. */
  readonly requestsPerSMax?: number;
  /** The latency at shares of this server's own maximum, by percent. */
  readonly atShares?: Readonly<Record<string, RateStep>>;
}

/** One server's latency at one rate. */
export interface RateStep {
  readonly requestsPerS: number;
  readonly latencyUs: Percentiles;
}

/** The time to one program's first response, and the resources used until then. Its starts' medians. */
export interface StartFigures {
  readonly name: string;
  readonly ms: number;
  readonly timesFloor: number;
  readonly cpuMs: number;
  readonly rssBytes: number;
  readonly rssTimesFloor: number;
}

/** How long a small request waits on one server while a large response is encoded and sent. */
export interface StallFigures {
  readonly name: string;
  readonly ms: number;
}

/** One server's resident memory: at the start, after a million calls, after two. */
export interface MemoryFigures {
  readonly name: string;
  readonly rssBytes: readonly number[];
}

/** A REST call's cost on several processes that share a port, compared with one: medians over all turns. */
export interface WorkerFigures {
  readonly workers: number;
  /** The CPU time per call of all processes as a multiple of that of a single process, by turn. */
  readonly timesOne: number;
  /** The multiple for processes that each have a separate port and part of the load. */
  readonly apartTimesOne: number;
}

/**
 * The costs of plants, deletions and their records in PostgreSQL. CPU times are the least of all turns, per deletion.
 */
export interface ScaleFigures {
  readonly measured: Measured;
  /** The machine's load average over five minutes, which includes the measurement. */
  readonly loadAverage: number;
  /** Bytes of a plant in its table, and in the index. */
  readonly plantTableBytes: number;
  readonly plantIndexBytes: number;
  /** Bytes of a deletion record with all indexes, and the part of it that is the index by plant. */
  readonly recordBytes: number;
  readonly recordIndexBytes: number;
  /** Write-ahead log of a deletion, without page images. */
  readonly walBytes: number;
  /** The bytes after a checkpoint, with images. */
  readonly afterCheckpoint: CheckpointFigures;
  /** CPU time of the one process that replays the log on a standby. */
  readonly replayUs: number;
  /** CPU time of a process with the store, without HTTP, at the largest batches. */
  readonly storeUs: number;
  /** CPU time of the server for one process, by its batches' size. */
  readonly oneProcess: readonly BatchFigures[];
  readonly twoProcesses: BatchFigures;
  /** CPU time of the server for an id of a statement that has a thousand. */
  readonly thousandUs: number;
  readonly citus?: CitusFigures;
}

/** A deletion's cost for the server, by the mean size of batches. */
export interface BatchFigures {
  readonly batch: number;
  readonly serverUs: number;
}

/** The log that a deletion writes after a checkpoint, and the deletion count, plants and records. */
export interface CheckpointFigures {
  readonly walBytes: number;
  readonly deletions: number;
  readonly plants: number;
  readonly records: number;
}

/** A deletion's cost on Citus with two workers. */
export interface CitusFigures {
  readonly measured: Measured;
  readonly points: readonly CitusPoint[];
}

/** One number of shards and size of batches. The CPU time of the workers is that of both together. */
export interface CitusPoint {
  readonly shards: number;
  readonly batch: number;
  readonly workersUs: number;
  readonly coordinatorUs: number;
}

const file = join(import.meta.dirname, "../docs/figures.json");

/** Returns the recorded figures, or an empty object when there are none. */
export function readFigures(): Figures {
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
}

/** Records new figures, and keeps the others. */
export function recordFigures(part: Figures): void {
  const before = readFigures();
  const merged: Record<string, unknown> = { ...before };
  for (const [name, value] of Object.entries(part)) {
    const old: unknown = merged[name];
    merged[name] = isParts(old) && isParts(value) ? { ...old, ...value } : value;
  }
  writeFileSync(file, `${JSON.stringify(merged, shorten, 1)}\n`);
}

/** Returns the current date, Node version and number of cores. */
export function measuredNow(): Measured {
  const date = new Date().toISOString().slice(0, "2026-11-21".length);
  return { date, node: process.versions.node, cores: availableParallelism() };
}

function isParts(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Rounds to four digits, which is more precise than two runs agree on. */
function shorten(_: string, value: unknown): unknown {
  return typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value;
}
