import { availableParallelism } from "node:os";
import type { Percentiles } from "./load/load.ts";

/** Maximum difference between the ratios in two rounds, or on two machines, that is not reported. */
export const maxRoundsDiffer = 0.15;

/** This project's server. */
export const ownName = "Protoport";

/** This project's server with grpc-js handlers. */
export const ownHandlersName = "Protoport, handlers of grpc-js";

/** This project's server with grpc-js handlers and the option `messages`. */
export const ownMessagesName = "Protoport, handlers with `messages`";

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
  readonly timesFloor: number;
  /** The lowest and the highest median ratio in a round, if they differ by more than {@link maxRoundsDiffer}. */
  readonly timesFloorRange?: readonly [number, number];
  readonly requestsPerS: number;
  readonly latencyUs: Percentiles;
  readonly rssIdleBytes: number;
  readonly rssLoadedBytes: number;
}

/** A server's latency at each rate with which it kept up. */
export interface RateFigures {
  readonly name: string;
  readonly steps: readonly RateStep[];
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

/** One server's resident memory. */
export interface MemoryFigures {
  readonly name: string;
  /** The memory at the start, after a million calls, and after two million. */
  readonly rssBytes: readonly number[];
  readonly idleConnectionBytes: number;
}

/** Returns the current date, Node version and core count. */
export function measuredNow(): Measured {
  const date = new Date().toISOString().slice(0, "2026-11-21".length);
  return { date, node: process.versions.node, cores: availableParallelism() };
}
