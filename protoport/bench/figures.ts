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
