/** A deletion record as it is moved to another store. */
export interface DeletionRecord {
  readonly plantId: bigint;
  /** The deletion's time, in µs since 1970-01-01 UTC. SQLite stores milliseconds. */
  readonly deletedAtUs: bigint;
  readonly subject: string;
  readonly requestId: string;
  /** The commit's number or UUID, see {@link batchNumberOf} and {@link batchUuidOf}. */
  readonly batch: string;
  readonly idempotencyKey: string | undefined;
}

/** A store's row counts. */
export interface StoreCounts {
  readonly plants: number;
  readonly records: number;
  /** Idempotency keys, each belonging to a record. */
  readonly keys: number;
}

/**
 * A store that no server uses and no other process can write to. All changes are in one transaction, and are rolled
 * back unless {@link commit} succeeds.
 *
 * Every method throws `StoreOpenError` with a message for the operator when the store fails. Each call has at most
 * 10,000 rows.
 */
export interface LockedStore extends AsyncDisposable {
  /** The file or server, for operators. */
  readonly name: string;
  /** Identifies the store. Two stores never have equal identities. */
  readonly identity: string;
  count(): Promise<StoreCounts>;
  /** Lists all ids in ascending order. */
  plants(): AsyncIterable<readonly bigint[]>;
  /** Lists all deletion records, oldest first. */
  records(): AsyncIterable<readonly DeletionRecord[]>;
  /** Inserts plants that do not exist, and returns how many were inserted. */
  insertPlants(ids: readonly bigint[]): Promise<number>;
  /** Inserts records that do not exist, with their keys, and returns how many were inserted. */
  insertRecords(records: readonly DeletionRecord[]): Promise<number>;
  /** Makes all changes durable, and unlocks the store. */
  commit(): Promise<void>;
}

/** Options to lock a store. */
export interface LockOptions {
  /** Whether the caller only reads the store. A server whose commits are not durable is then accepted. */
  readonly isReadOnly: boolean;
  /** The identity that must not be opened. */
  readonly refused?: string | undefined;
  /** How long to watch for servers on PostgreSQL, in milliseconds. By default, long enough for each server to write. */
  readonly watchMs?: number | undefined;
}
