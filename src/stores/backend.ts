import type { DeleteCall, StoreConnections, StoreFile } from "../service/index.ts";
import { type Deletion, endings, type FailedEnding } from "./deletion.ts";
import type { StoreProblem } from "./store-health.ts";

/**
 * What is behind the queue of a store. A new backend implements this, and adds its kind to plant-location.ts;
 * {@link queuedStore} makes it a `PlantStore`.
 */
export interface Backend {
  /** The file or server, for operators. */
  readonly name: string;
  /** Why the backend cannot delete. */
  readonly problem: StoreProblem | undefined;
  /** The most deletions in a batch. */
  readonly batchMax: number;
  /** The most deletions that wait for a batch in each lane. */
  readonly waitingMax: number;
  /**
   * Makes a batch durable: ends each of its deletions ({@link Deletion.decide}), once its outcome cannot be lost, or
   * defers it, and attempts it again later. If it fails, returns the ending of those that it has left open. Rejects only
   * if the outcome of these is unknown.
   */
  commit(batch: readonly Deletion[]): Promise<FailedEnding | undefined>;
  /** Ends deferred deletions, then closes files and connections. No batch is being committed. */
  close(): Promise<void>;
  /** Why deletions wait before the first batch, for operators; `undefined` once they do not. */
  readonly pending?: string | undefined;
  /** The number of deferred deletions. */
  readonly deferred?: number;
  readonly connections?: StoreConnections;
  readonly file?: StoreFile;
  /**
   * By default a backend has one lane, 0, with one batch at a time. Lanes may change; read only while the backend has no
   * problem, or has had a batch.
   */
  readonly lanes?: Lanes;
}

/** Lanes: only deletions of the same lane share a batch. */
export interface Lanes {
  of(id: bigint): number;
  /** The most batches of one lane that are committed at the same time. */
  readonly inFlightMax: number;
  /** Whether a lane is still used. */
  isUsed(lane: number): boolean;
  /** Returns a call with its idempotency key as the records of the backend contain it. */
  toRecordedCall(call: DeleteCall, id: bigint): DeleteCall;
}

/** Returns the problem of a backend, with its name. */
export function problemOf({ name, problem }: Pick<Backend, "name" | "problem">): string | undefined {
  return problem && `${name}: ${problem.text}`;
}

/** Returns the ending of a batch that is not sent, because its backend has a problem. */
export function refusalOf(backend: Pick<Backend, "name" | "problem">): FailedEnding | undefined {
  const problem = problemOf(backend);
  return problem === undefined ? undefined : endings.unavailable(problem);
}
