import type { ContextValues } from "@connectrpc/connect";

/** The call that requests a deletion. */
export interface DeleteCall {
  /** The principal's identifier: JWT `sub`, or the token's name. */
  readonly subject: string;
  /** The call's id in the log. */
  readonly requestId: string;
  /**
   * Calls with the same key, plant and subject count as one deletion. As long as its record is kept, they all get the
   * first outcome. A call with the same key and another plant or subject is refused. The key includes the issuer.
   * Without a key, every call is a separate deletion.
   */
  readonly idempotencyKey?: string | undefined;
  /**
   * The `signal` aborts when the call is cancelled. A store reads it only for a queued deletion, because Connect
   * creates it on first access. If it has aborted, the store drops the deletion. The `values` are used only for traces
   * and metrics.
   */
  readonly context: { readonly signal: AbortSignal; readonly values?: ContextValues };
}

/** How many deletions a store has queued. */
export interface WaitingDeletions {
  /** Deletions that wait for a batch. */
  readonly forBatch: number;
  /** The current limit for {@link forBatch}, above which deletions are refused. Lower while the store is overloaded. */
  readonly forBatchMax: number;
  /** Deletions that wait for a locked plant, or for another use of their idempotency key. */
  readonly forLock: number;
}

/** A store's connections to its server. A connection that the server has closed is detected on its next use. */
export interface StoreConnections {
  /** Connections in use by a batch or a health check. */
  readonly used: number;
  readonly idle: number;
}

/** A store's file, as the last check has found it. */
export interface StoreFile {
  /** Whether a second name, such as a hard link, leads to the file. A server refuses to start with it. */
  readonly hasSecondName: boolean;
  /** Whether the write-ahead log has not been copied into the file for a minute, so that it grows. */
  readonly areCheckpointsStalled: boolean;
}

/**
 * A plant store.
 *
 * Every store guarantees: when a plant is deleted several times concurrently, exactly one call gets `true`. No deletion
 * is acknowledged before it is durable. No acknowledged deletion is lost. Calls with the same idempotency key are one
 * deletion.
 */
export interface PlantStore {
  /**
   * Deletes a plant. Once the outcome is durable, resolves to whether this call, or an earlier call with the same key,
   * deleted the plant, or `false` if the plant does not exist.
   *
   * @throws ConnectError `ResourceExhausted` when the queue is full
   * @throws ConnectError `Unavailable` when the store is unavailable, or the outcome is unknown
   * @throws ConnectError `FailedPrecondition` when the database protects this plant, or when a call with a key has a
   * subject that cannot be recorded unchanged
   * @throws ConnectError `AlreadyExists` when the call's key belongs to another deletion
   * @throws the signal's reason when the call is cancelled while it is queued
   */
  delete(id: bigint, call: DeleteCall): Promise<boolean>;

  /** Why the store cannot delete at the moment, for an operator, otherwise `undefined`. */
  readonly problem: string | undefined;

  /** Whether the {@link problem} is only that the store is being checked. Deletions wait for the check. */
  readonly isChecking?: boolean;

  /**
   * Whether only restarting the process can fix the problem, because after a failed fsync, cached data is not
   * trustworthy. Meaningless after the store is closed.
   */
  readonly needsRestart?: boolean;

  /** Queued deletions, or `undefined` for a store without a queue. */
  readonly waiting?: WaitingDeletions;

  /** The connections to the server, or `undefined` for a store without a server. */
  readonly connections?: StoreConnections | undefined;

  /** The store's file, or `undefined` for a store without a file. */
  readonly file?: StoreFile | undefined;

  /** Finishes accepted deletions, then closes files and connections. Later deletions get `Unavailable`. */
  close(): Promise<void>;
}
