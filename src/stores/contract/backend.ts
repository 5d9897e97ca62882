import type { DeleteCall, StoreConnections, StoreFile } from "../../service/index.ts";
import { type Deletion, endings, type FailedEnding } from "./deletion.ts";
import type { StoreProblem } from "./store-health.ts";

/** Commits the batches of deletions from a store's queue, see {@link queuedStore}. */
export interface Backend {
  /** The file or server, for operators. */
  readonly name: string;
  readonly problem: StoreProblem | undefined;
  /**
   * Ends each deletion ({@link Deletion.decide}) once its outcome is durable, or defers it to a later batch. If the
   * batch fails, returns the ending for its open and deferred deletions. Rejects only if their outcome is unknown.
   */
  commit(batch: readonly Deletion[], attempt: Attempt): Promise<FailedEnding | undefined>;
  /** Closes files and connections. Called when no batch is being committed and no deletion is deferred. */
  close(): Promise<void>;
  /** Minimum time for a batch attempt, in milliseconds. Default 0. */
  readonly attemptMsMin?: number;
  /** Why deletions wait before the first batch, for operators. Undefined if deletions do not wait. */
  readonly pending?: string | undefined;
  readonly connections?: StoreConnections;
  readonly file?: StoreFile;
  /**
   * The lanes for deletions. By default, a backend has only lane 0, with one batch at a time. Read the lanes for each
   * use, because lanes may change. Do not read the lanes before the first batch while the backend has a problem.
   */
  readonly lanes?: Lanes;
}

/** A batch's timeout including retries, in milliseconds. Longer than a restart or failover takes. */
export const batchTimeoutMs = 10_000;

/** Parameters for one attempt to commit a batch. */
export interface Attempt {
  /** The batch's deadline, on the `performance.now()` clock. Backends without retries ignore the deadline. */
  readonly deadlineMs: number;
  /** Whether the batch should not wait for locks. True if deletions are deferred, because more plants may be locked. */
  readonly isCareful: boolean;
}

/** Divides deletions into lanes. Only deletions in the same lane share a batch. */
export interface Lanes {
  of(id: bigint): number;
  /** Maximum number of concurrent batches per lane. */
  readonly inFlightMax: number;
  isUsed(lane: number): boolean;
  /** Returns the call with its idempotency key in the format of the backend's records. */
  toRecordedCall(call: DeleteCall, id: bigint): DeleteCall;
}

/** Returns a backend's name and problem. Undefined if the backend has no problem. */
export function problemOf({ name, problem }: Pick<Backend, "name" | "problem">): string | undefined {
  return problem && `${name}: ${problem.text}`;
}

/** Returns the ending for deletions while a backend has a problem, otherwise `undefined`. */
export function refusalOf(backend: Pick<Backend, "name" | "problem">): FailedEnding | undefined {
  const problem = problemOf(backend);
  return problem === undefined ? undefined : endings.unavailable(problem);
}
