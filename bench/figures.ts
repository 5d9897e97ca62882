import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import type { Percentiles } from "./load/load.ts";

/** The name under which this project's own server runs. */
export const ownName = "plantstore";

/** The name of this project's own server on node:http and node:http2 instead of its engine. */
export const ownNodeName = "plantstore on node's HTTP";

/** The name of this project's own server on an SQLite file; the others keep their plants in memory. */
export const ownSqliteName = "plantstore on SQLite";

/** What the bench has seen, part by part: what the tables and pictures of the docs are made of. */
export interface Figures {
  /** Comparisons by turns, by the name of their scenario. */
  readonly calls?: Readonly<Record<string, CallFigures>>;
  /** Latency at fixed rates, by protocol. */
  readonly rates?: Readonly<Record<string, readonly RateFigures[]>>;
  /** From the start of the process to the first answer; the first one is the floor. */
  readonly starts?: readonly StartFigures[];
  /** Resident memory after many calls, by the name of the scenario. */
  readonly memory?: Readonly<Record<string, readonly MemoryFigures[]>>;
  /** How long a list of 10 MB keeps others waiting, by the name of the scenario. */
  readonly stalls?: Readonly<Record<string, readonly StallFigures[]>>;
  /** Several processes on one port. */
  readonly workers?: WorkerFigures | undefined;
  /** What plants, deletions and their records cost a database. */
  readonly scale?: ScaleFigures;
}

/** One comparison by turns. */
export interface CallFigures {
  readonly measured: Measured;
  /** The first one is the floor. */
  readonly servers: readonly ServerFigures[];
  /** The most that anything else took of the server's core in a turn. */
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
  /** The ratio of the two least CPU times. */
  readonly leastTimesFloor: number;
  readonly requestsPerS: number;
  readonly latencyUs: Percentiles;
  readonly rssIdleBytes: number;
  readonly rssLoadedBytes: number;
}

/** The latency of one server at each rate that it kept up with. */
export interface RateFigures {
  readonly name: string;
  readonly steps: readonly { readonly requestsPerS: number; readonly latencyUs: Percentiles }[];
}

/** How soon one program answers, and what it has used by then: medians of its starts. */
export interface StartFigures {
  readonly name: string;
  readonly ms: number;
  readonly timesFloor: number;
  readonly cpuMs: number;
  readonly rssBytes: number;
  readonly rssTimesFloor: number;
}

/** How long a small request waits on one server while a long answer is made and sent. */
export interface StallFigures {
  readonly name: string;
  readonly ms: number;
}

/** The resident memory of one server: at the start, after a million calls, after two. */
export interface MemoryFigures {
  readonly name: string;
  readonly rssBytes: readonly number[];
}

/** What a REST call costs several processes on one port, compared with one: medians over all turns. */
export interface WorkerFigures {
  readonly workers: number;
  /** CPU time of all processes for a call as a multiple of that of one, turn by turn. */
  readonly timesOne: number;
  /** The same of processes that each have a port and a part of the load to themselves. */
  readonly apartTimesOne: number;
}

/** What plants, deletions and their records cost PostgreSQL: CPU is the least of all turns, for one deletion. */
export interface ScaleFigures {
  readonly measured: Measured;
  /** Processes that wanted a core at a time, those of the measurement included: the mean of five minutes. */
  readonly loadAverage: number;
  /** Bytes of a plant in its table, and in the index. */
  readonly plantTableBytes: number;
  readonly plantIndexBytes: number;
  /** Bytes of a deletion record with all indexes, and the part of it that is the index by plant. */
  readonly recordBytes: number;
  readonly recordIndexBytes: number;
  /** Write-ahead log of a deletion, without images of pages. */
  readonly walBytes: number;
  /** The same from a checkpoint on, with images. */
  readonly afterCheckpoint: CheckpointFigures;
  /** CPU time of the one process that replays the log on a standby. */
  readonly replayUs: number;
  /** CPU time of a process with the store, without HTTP, at the largest batches. */
  readonly storeUs: number;
  /** CPU time of the server for one process, by the size of its batches. */
  readonly oneProcess: readonly BatchFigures[];
  readonly twoProcesses: BatchFigures;
  /** CPU time of the server for an id of a statement that has a thousand. */
  readonly thousandUs: number;
  readonly citus?: CitusFigures;
}

/** What a deletion costs the server in batches of a size, which is a mean. */
export interface BatchFigures {
  readonly batch: number;
  readonly serverUs: number;
}

/** What a deletion writes from a checkpoint on, and of how many plants and records it was one. */
export interface CheckpointFigures {
  readonly walBytes: number;
  readonly deletions: number;
  readonly plants: number;
  readonly records: number;
}

/** What a deletion costs Citus with two workers. */
export interface CitusFigures {
  readonly measured: Measured;
  readonly points: readonly CitusPoint[];
}

/** One number of shards and size of batches; the CPU time of the workers is that of both together. */
export interface CitusPoint {
  readonly shards: number;
  readonly batch: number;
  readonly workersUs: number;
  readonly coordinatorUs: number;
}

const file = join(import.meta.dirname, "../docs/figures.json");

/** Returns what was recorded; nothing where nothing was. */
export function readFigures(): Figures {
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
}

/** Records what was measured now, and leaves the rest as it was. */
export function recordFigures(part: Figures): void {
  const before = readFigures();
  const merged: Record<string, unknown> = { ...before };
  for (const [name, value] of Object.entries(part)) {
    const old: unknown = merged[name];
    merged[name] = isParts(old) && isParts(value) ? { ...old, ...value } : value;
  }
  writeFileSync(file, `${JSON.stringify(merged, shorten, 1)}\n`);
}

/** Returns when and where something is measured that is measured now. */
export function measuredNow(): Measured {
  const date = new Date().toISOString().slice(0, "2026-11-21".length);
  return { date, node: process.versions.node, cores: availableParallelism() };
}

function isParts(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Four digits tell more than two runs have in common. */
function shorten(_: string, value: unknown): unknown {
  return typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value;
}
