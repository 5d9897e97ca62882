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
 * The source or target of a move. Servers may use the store at the same time.
 *
 * The plants are read from and inserted into the table `moved_plants`. Statements in SQL must be valid in SQLite and
 * PostgreSQL. If the store fails, methods throw `StoreOpenError` for the operator.
 */
export interface MovableStore extends AsyncDisposable {
  /** The file or server, for operators. */
  readonly name: string;
  /**
   * Begins a transaction, and locks the marks until its end.
   *
   * @param isSnapshot - whether all statements in the transaction read the same rows
   */
  begin(isSnapshot: boolean): Promise<void>;
  /** Commits the transaction durably. */
  commit(): Promise<void>;
  /** Rolls the transaction back, if there is one. */
  rollBack(): Promise<void>;
  /** Runs a statement with the parameter `$1`. */
  run(sql: string, value?: string): Promise<void>;
  /** Returns the first row's columns as text. */
  get(sql: string): Promise<readonly (string | null)[]>;
  /** Counts all rows. `plants` is the name of the table with the plants. */
  count(plants: "plants" | "moved_plants"): Promise<StoreCounts>;
  /** Lists all ids in ascending order, in chunks with at most 10,000 ids. */
  plants(): AsyncIterable<readonly bigint[]>;
  /** Lists all deletion records, oldest first, in chunks with at most 10,000 records. */
  records(): AsyncIterable<readonly DeletionRecord[]>;
  insertPlants(ids: readonly bigint[]): Promise<void>;
  /** Inserts records and their idempotency keys. */
  insertRecords(records: readonly DeletionRecord[]): Promise<void>;
}
