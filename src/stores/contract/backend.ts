import type { DeleteCall, StoreConnections, StoreFile } from "../../service/index.ts";
import { type Deletion, endings, type FailedEnding } from "./deletion.ts";
import type { StoreProblem } from "./store-health.ts";

/** Commits the batches of deletions from a store's queue, see {@link queuedStore}. Each backend is used in index.ts. */
export interface Backend {
  /** The file or server, for operators. */
  readonly name: string;
  readonly problem: StoreProblem | undefined;
  /**
   * Makes a batch durable. Ends each deletion ({@link Deletion.decide}) once its outcome cannot be lost, or defers it
   * to a later batch. If the batch fails, returns the ending for the deletions that are still open or deferred. Rejects
   * only if the outcome of these deletions is unknown.
   */
  commit(batch: readonly Deletion[], attempt: Attempt): Promise<FailedEnding | undefined>;
  /** Closes files and connections. No batch is being committed, and no deletion is deferred. */
  close(): Promise<void>;
  /** The shortest time for a batch attempt, in milliseconds. 0 by default. */
  readonly attemptMsMin?: number;
  /** Why deletions wait before the first batch, for operators. `undefined` once they do not. */
  readonly pending?: string | undefined;
  readonly connections?: StoreConnections;
  readonly file?: StoreFile;
  /**
   * By default a backend has one lane, 0, with one batch at a time. Lanes may change. Read only while the backend has
   * no problem, or has had a batch.
   */
  readonly lanes?: Lanes;
}

/** A batch's timeout with all its retries and parts, in milliseconds: longer than a restart or failover takes. */
export const batchTimeoutMs = 10_000;

/** How a batch is attempted. */
export interface Attempt {
  /** When the batch must have ended, on the `performance.now()` clock. A backend without retries ignores it. */
  readonly deadlineMs: number;
  /** Whether the batch should not wait for locks. Its deletions are deferred, and other plants may be locked, too. */
  readonly isCareful: boolean;
}

/** Only deletions in the same lane share a batch. */
export interface Lanes {
  of(id: bigint): number;
  /** Maximum number of batches in one lane that are committed at the same time. */
  readonly inFlightMax: number;
  /** Whether a lane is still used. */
  isUsed(lane: number): boolean;
  /** Returns a call with its idempotency key as the backend's records contain it. */
  toRecordedCall(call: DeleteCall, id: bigint): DeleteCall;
}

/** Returns a backend's problem, with its name. */
export function problemOf({ name, problem }: Pick<Backend, "name" | "problem">): string | undefined {
  return problem && `${name}: ${problem.text}`;
}

/** Returns the ending for a batch that is not sent, because its backend has a problem. */
export function refusalOf(backend: Pick<Backend, "name" | "problem">): FailedEnding | undefined {
  const problem = problemOf(backend);
  return problem === undefined ? undefined : endings.unavailable(problem);
}
