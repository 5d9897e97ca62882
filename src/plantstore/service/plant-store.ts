import type { ContextValues } from "@connectrpc/connect";

/** The call that asks for a deletion. */
export interface DeleteCall {
  /** The principal's id text: JWT `sub`, or the name of the token. */
  readonly subject: string;
  /** The id that ties the call to its log lines. */
  readonly requestId: string;
  /**
   * Makes all calls with the same key one deletion. Once one of them has deleted its plant, and for as long as its
   * record is kept, calls for the same plant by the same subject get the same outcome, and all others are refused. The
   * key includes the issuer, since two issuers may have the same subject. Without a key, each call is a deletion of its
   * own.
   */
  readonly idempotencyKey?: string | undefined;
  /**
   * The `signal` aborts when the call is given up. Connect creates it when it is first read, so a store reads it only
   * for a deletion that had to wait, and drops the deletion if the signal has aborted. The `values` are for
   * traces and metrics of a store alone.
   */
  readonly context: { readonly signal: AbortSignal; readonly values?: ContextValues };
}

/** The numbers of deletions that wait in a store. */
export interface WaitingDeletions {
  /** Deletions that wait for a batch. */
  readonly forBatch: number;
  /** How many may wait for a batch; further ones are refused. Lower while the store cannot keep up. */
  readonly forBatchMax: number;
  /** Deletions that wait for another transaction, which keeps their plants locked. */
  readonly forLock: number;
}

/** Connections of a store to its server. A server that has closed one is noticed when it is used. */
export interface StoreConnections {
  /** Those with a batch, or a check of the server. */
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
   * Deletes a plant. Once the outcome is durable, resolves to whether *this* call, or an earlier one with its key,
   * deleted the plant; a missing plant is not an error.
   *
   * @throws ConnectError `ResourceExhausted` when the queue is full, `Unavailable` when the store is unavailable or the
   * outcome cannot be known, `FailedPrecondition` when the database protects this plant, or a call with a key has a
   * subject that cannot be recorded as it is, `AlreadyExists` when its key belongs to another deletion, the reason of the
   * signal when the call was given up while it waited to be sent
   */
  delete(id: bigint, call: DeleteCall): Promise<boolean>;

  /** Why the store cannot delete right now, for an operator; `undefined` while it can. */
  readonly problem: string | undefined;

  /**
   * Whether only a restart of the process can mend the problem: after a failed fsync, nothing that it holds in memory
   * can be trusted. Has no meaning once the store is closed.
   */
  readonly needsRestart?: boolean;

  /** Deletions that wait; `undefined` for a store in which none ever does. */
  readonly waiting?: WaitingDeletions;

  /** The connections to the server; `undefined` for a store that has none. */
  readonly connections?: StoreConnections;

  /** Finishes accepted deletions, then closes files and connections. Later deletions get `Unavailable`. */
  close(): Promise<void>;
}
