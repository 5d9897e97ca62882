import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type {
  CallFigures,
  MemoryFigures,
  RateFigures,
  StallFigures,
  StartFigures,
} from "../protoport/bench/figures.ts";

/** The plant store's server. */
export const ownName = "plantstore";

/** The plant store's server on an SQLite file. All other servers keep their plants in memory. */
export const ownSqliteName = "plantstore on SQLite";

/** The plant store's server on an SQLite file, with the log that `plantstore serve` writes. */
export const ownLoggedName = "plantstore on SQLite, with its log";

/** The bench's results, from which the tables and the docs' pictures are generated. */
export interface Figures {
  /** Comparisons of servers in turns, by scenario. */
  readonly calls?: Readonly<Record<string, CallFigures>>;
  /** Latency over HTTP/1.1 at fixed rates. */
  readonly rates?: readonly RateFigures[];
  /** The cost of each program from process start to the first response. The first program is the floor. */
  readonly starts?: readonly StartFigures[];
  /** Resident memory, and the memory of idle connections. */
  readonly memory?: readonly MemoryFigures[];
  /** The delays of other requests by a 10 MB list. */
  readonly stalls?: readonly StallFigures[];
  /** Deletions per second on each store. */
  readonly deletions?: readonly DeletionFigures[];
}

/** A store's durable deletions over REST, each as the lowest and the highest result of several processes. */
export interface DeletionFigures {
  readonly name: string;
  readonly loads: readonly {
    readonly callers: number;
    readonly deletionsPerS: readonly [number, number];
    readonly p99Us: readonly [number, number];
  }[];
}

const file = join(import.meta.dirname, "../docs/figures.json");

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

function isParts(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Rounds to four digits. The difference between two runs is larger than the rounding error. */
function shorten(_: string, value: unknown): unknown {
  return typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value;
}
