import type { ContextValues } from "@connectrpc/connect";

/** The call that asks for a deletion. */
export interface DeleteCall {
  /** The identifier of the principal: JWT `sub`, or the name of the token. */
  readonly subject: string;
  /** The id that ties the call to its log lines. */
  readonly requestId: string;
  /**
   * Calls with the same key, plant and subject are one deletion: while its record is kept, each of them gets the first
   * outcome. The same key with another plant or subject is refused. The key includes the issuer. Without a key, every
   * call is a separate deletion.
   */
  readonly idempotencyKey?: string | undefined;
  /**
   * The `signal` aborts when the call is cancelled. Connect creates it on first access, so a store reads it only for a
   * queued deletion, and drops the deletion if it has aborted. The `values` are only for traces and metrics of a store.
   */
  readonly context: { readonly signal: AbortSignal; readonly values?: ContextValues };
}

/** The numbers of deletions that wait in a store. */
export interface WaitingDeletions {
  /** Deletions that wait for a batch. */
  readonly forBatch: number;
  /** The current limit of {@link forBatch}; further deletions are refused. Lower while the store is overloaded. */
  readonly forBatchMax: number;
  /** Deletions that wait for another transaction, which keeps their plants locked. */
  readonly forLock: number;
}

/** Connections of a store to its server. One that the server has closed is detected on its next use. */
export interface StoreConnections {
  /** Connections in use by a batch or a health check. */
  readonly used: number;
  readonly idle: number;
}

/**
 * A store of plants.
 *
 * Every store guarantees: of any number of concurrent deletions of one plant exactly one gets `true`; nothing is
 * acknowledged before it is durable; an acknowledged deletion is never lost. Calls with the same idempotency key are one
 * deletion.
 */
export interface PlantStore {
  /**
   * Deletes a plant. Resolves, once the outcome is durable, to whether this call, or an earlier one with its key,
   * deleted the plant; `false` if there is no such plant.
   *
   * @throws ConnectError `ResourceExhausted` when the queue is full
   * @throws ConnectError `Unavailable` when the store is unavailable or the outcome cannot be known
   * @throws ConnectError `FailedPrecondition` when the database protects this plant, or when a call with a key has a
   * subject that cannot be recorded unchanged
   * @throws ConnectError `AlreadyExists` when its key belongs to another deletion
   * @throws the reason of the signal when the call is cancelled while it is queued
   */
  delete(id: bigint, call: DeleteCall): Promise<boolean>;

  /** Why the store cannot delete right now, for an operator; `undefined` while it can. */
  readonly problem: string | undefined;

  /** Whether the {@link problem} is that the store checks itself; deletions wait meanwhile. */
  readonly isChecking?: boolean;

  /**
   * Whether only a restart of the process can fix the problem: after a failed fsync, what the process holds in memory
   * is not trustworthy. Has no meaning once the store is closed.
   */
  readonly needsRestart?: boolean;

  /** Queued deletions; `undefined` for a store without a queue. */
  readonly waiting?: WaitingDeletions;

  /** The connections to the server; `undefined` for a store that has none. */
  readonly connections?: StoreConnections;

  /** Finishes accepted deletions, then closes files and connections. Later deletions get `Unavailable`. */
  close(): Promise<void>;
}
