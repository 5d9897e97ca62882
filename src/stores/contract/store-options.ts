import type { DeleteCall, PlantErrorCode } from "../../service/index.ts";

/**
 * Called when a batch is sent, for metrics and traces. Must not throw.
 *
 * @returns a function to call once the batch's outcome is known, without an error if the batch is durable
 */
export type OnBatch = (calls: readonly DeleteCall[]) => (error?: unknown) => void;

/** Options for every persistent store. */
export interface DurableStoreOptions {
  /** How long deletion records are kept, in milliseconds. Default 90 days, at least an hour. */
  readonly deletionsKeptMs?: number;
  readonly onBatch?: OnBatch | undefined;
  readonly onUpkeep?: OnUpkeep | undefined;
}

/** How long deletion records are kept by default, in milliseconds: 90 days. */
export const deletionsKeptMsDefault: number = 90 * 24 * 3_600_000;

// Minimum time to keep deletion records, in milliseconds: an hour. A retry must find the first attempt's record, and an
// import must find the records of plants that are deleted during the import.
const minDeletionsKeptMs = 3_600_000;

/** @throws RangeError when the time is less than an hour */
export function checkDeletionsKept(keptMs: number = deletionsKeptMsDefault): void {
  if (keptMs >= minDeletionsKeptMs) return;
  throw new RangeError(`deletionsKeptMs must be at least ${minDeletionsKeptMs} (an hour), got ${keptMs}`);
}

/** How often a store drops expired records, in milliseconds. */
export const retentionIntervalMs: number = 10 * 60_000;

/** A store event other than a deletion. `lastedMs` is how long the event lasted, in milliseconds. */
export type Upkeep =
  /** The file's schema was migrated from one version to another. A new file has version 0. */
  | { readonly kind: "migrated"; readonly from: number; readonly to: number; readonly lastedMs: number }
  | { readonly kind: "records-dropped"; readonly count: number; readonly lastedMs: number }
  /** Some expired records could not be dropped. `problem` is the reason. The store retries at the next interval. */
  | { readonly kind: "retention-failed"; readonly problem: string; readonly lastedMs: number }
  /** The file has a second name, such as a hard link. `problem` tells an operator what to do. */
  | { readonly kind: "second-name-found"; readonly problem: string }
  | { readonly kind: "second-name-gone"; readonly lastedMs: number }
  /** The write-ahead log has not been copied into the file for a minute. `problem` gives an operator the reason. */
  | { readonly kind: "checkpoints-stalled"; readonly problem: string }
  | { readonly kind: "checkpoints-resumed"; readonly lastedMs: number }
  /** Deletions failed because the server allows the store fewer connections than it needs. `problem` is the error. */
  | { readonly kind: "connections-refused"; readonly lastedMs: number; readonly problem: string };

/** Called after each event. Must not throw. */
export type OnUpkeep = (upkeep: Upkeep) => void;

/** Returns the milliseconds since a time on the `performance.now()` clock, as an integer. */
export function elapsedMsSince(begunMs: number): number {
  return Math.round(performance.now() - begunMs);
}

/** Reports the number of dropped records, and the problem for which dropping stopped, if any. */
export function reportDropped(onUpkeep: OnUpkeep | undefined, count: number, begunMs: number, problem?: string): void {
  const lastedMs = elapsedMsSince(begunMs);
  if (count > 0) onUpkeep?.({ kind: "records-dropped", count, lastedMs });
  if (problem !== undefined) onUpkeep?.({ kind: "retention-failed", problem, lastedMs });
}

/**
 * Prepares a function that reports a problem once, and again if its text changes, and then its end. The function returns
 * whether there is a problem.
 */
export function reportProblem(
  onUpkeep: OnUpkeep,
  found: "second-name-found" | "checkpoints-stalled",
  gone: "second-name-gone" | "checkpoints-resumed",
): (problem: string | undefined) => boolean {
  let known: string | undefined;
  let foundMs = 0;
  return (problem) => {
    if (problem !== undefined && known === undefined) foundMs = performance.now();
    if (problem === undefined && known !== undefined) onUpkeep({ kind: gone, lastedMs: elapsedMsSince(foundMs) });
    if (problem !== undefined && problem !== known) onUpkeep({ kind: found, problem });
    known = problem;
    return problem !== undefined;
  };
}

/** A store cannot be opened or used. The message tells the operator why, with the file or server, but no password. */
export class StoreOpenError extends Error {
  override readonly name = "StoreOpenError";
  /** The error code, as in Node.js. See docs/reference/errors.md. */
  readonly code: PlantErrorCode = "ERR_STORE_OPEN";
}
