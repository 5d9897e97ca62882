import type { ContextValues } from "@connectrpc/connect";

/** The call that requests a deletion. */
export interface DeleteCall {
  /** The principal's identifier: the `sub` of a JWT, or the name of a token. */
  readonly subject: string;
  /** The request id, which identifies the call in the log. */
  readonly requestId: string;
  /**
   * Calls with the same key, plant and subject count as one deletion. While the deletion's record is kept, each call
   * gets the first outcome. A call with the same key and another plant or subject is refused. The key includes the
   * issuer. Without a key, every call is a separate deletion.
   */
  readonly idempotencyKey?: string | undefined;
  /**
   * The `signal` aborts when the call is cancelled. A store drops a queued deletion if the signal has aborted. A store
   * reads the signal only for queued deletions, because Connect creates a signal on first access. The `values` are used
   * only for traces and metrics.
   */
  readonly context: { readonly signal: AbortSignal; readonly values?: ContextValues };
}

/** Numbers of waiting deletions. */
export interface WaitingDeletions {
  /** Number of deletions that wait for a batch. */
  readonly forBatch: number;
  /** The limit for {@link forBatch}. Further deletions are refused. */
  readonly maxForBatch: number;
  /** Number of deletions that wait for a locked plant, or for a call with the same idempotency key. */
  readonly forLock: number;
}

/** Numbers of connections to the database server. A lost connection still counts, and reconnects at its next use. */
export interface StoreConnections {
  /** Number of connections that a batch or a health check uses. */
  readonly used: number;
  readonly idle: number;
}

/** The state of a store's file at the last check. */
export interface StoreFile {
  /** Whether the file has a second name, such as a hard link. A server does not start if its file has a second name. */
  readonly hasSecondName: boolean;
  /** Whether the write-ahead log has not been copied into the file for a minute. The log then keeps growing. */
  readonly areCheckpointsStalled: boolean;
}

/**
 * A plant store.
 *
 * If several calls delete a plant concurrently, exactly one call gets `true`. No deletion is acknowledged before it is
 * durable. No acknowledged deletion is lost. Calls with the same idempotency key count as one deletion.
 */
export interface PlantStore {
  /**
   * Deletes a plant. Resolves once the outcome is durable. Resolves to `true` if this call, or an earlier call with the
   * same key, deleted the plant, and to `false` if the plant does not exist.
   *
   * @throws ConnectError `ResourceExhausted` when the queue is full
   * @throws ConnectError `Unavailable` when the store is unavailable, or the outcome is unknown
   * @throws ConnectError `FailedPrecondition` when the database protects this plant, or when the call has a key and its
   * subject cannot be stored unchanged
   * @throws ConnectError `AlreadyExists` when the call's key belongs to another deletion
   * @throws the signal's reason when the call is cancelled while it is queued
   */
  delete(id: bigint, call: DeleteCall): Promise<boolean>;

  /** Why the store cannot delete at the moment, for an operator. Undefined if the store can delete. */
  readonly problem: string | undefined;

  /** Whether {@link problem} only reports a running check of the store. Deletions wait for the check. */
  readonly isChecking?: boolean;

  /**
   * Whether only a restart of the process can fix the problem. For example, cached data is not trustworthy after a
   * failed fsync. The value has no meaning after the store is closed.
   */
  readonly needsRestart?: boolean;

  /** The waiting deletions. Undefined for a store without a queue. */
  readonly waiting?: WaitingDeletions;

  /** The connections to the database server. Undefined for a store without a server. */
  readonly connections?: StoreConnections | undefined;

  /** The state of the store's file. Undefined for a store without a file. */
  readonly file?: StoreFile | undefined;

  /**
   * Finishes accepted deletions, then closes files and connections. Later deletions get `Unavailable`. Rejects if a check
   * at the end finds that an operator must act before a restart, such as for a moved file.
   */
  close(): Promise<void>;
}
