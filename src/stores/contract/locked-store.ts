import type { Deletion } from "./plant-database.ts";

/** A deletion record that is moved to another store. `batch` is a number or UUID, see {@link batchNumberOf}. */
export interface DeletionRecord extends Omit<Deletion, "deletedAt"> {
  /** The deletion's time, in µs since 1970-01-01 UTC. SQLite stores only milliseconds. */
  readonly deletedAtUs: bigint;
  readonly idempotencyKey: string | undefined;
}

/** A store's row counts. */
export interface StoreCounts {
  readonly plants: number;
  readonly records: number;
  /** Number of records with an idempotency key. */
  readonly keys: number;
}

/**
 * A store that no other process can write to. All changes are rolled back unless {@link commit} succeeds.
 *
 * If the store fails, methods throw `StoreOpenError` for the operator. Callers insert at most 10,000 rows per call.
 */
export interface LockedStore extends AsyncDisposable {
  /** The file or server, for operators. */
  readonly name: string;
  /** The store's unique id. Two stores never have the same identity. */
  readonly identity: string;
  count(): Promise<StoreCounts>;
  /** Lists all ids in ascending order. */
  plants(): AsyncIterable<readonly bigint[]>;
  /** Lists all deletion records, oldest first. */
  records(): AsyncIterable<readonly DeletionRecord[]>;
  /** Inserts plants, except existing plants. Returns the number of inserted plants. */
  insertPlants(ids: readonly bigint[]): Promise<number>;
  /** Inserts records and their keys, except existing records. Returns the number of inserted records. */
  insertRecords(records: readonly DeletionRecord[]): Promise<number>;
  /** Makes all changes durable, and unlocks the store. */
  commit(): Promise<void>;
}

/** Options to lock a store. */
export interface LockOptions {
  /** Whether the caller only reads the store. Reading does not require durable commits. */
  readonly isReadOnly: boolean;
  /** The identity of a store that must not be opened. */
  readonly refused?: string | undefined;
  /** How long to watch PostgreSQL for servers that write, in milliseconds. The default detects every server. */
  readonly watchMs?: number | undefined;
}
