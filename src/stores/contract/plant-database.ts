import { StoreOpenError } from "./store-options.ts";

/** A deletion record. */
export interface Deletion {
  readonly plantId: bigint;
  /** The deletion's time, in µs since 1970-01-01 UTC. SQLite stores only milliseconds. */
  readonly deletedAtUs: bigint;
  /** The principal's id as text. */
  readonly subject: string;
  readonly requestId: string;
  /** Equal for all deletions that were committed together: a number from SQLite, or a UUID from PostgreSQL. */
  readonly batch: string;
  /** The key, if the deletion had one. {@link PlantDatabase.listDeletions} may omit it. */
  readonly idempotencyKey?: string | undefined;
}

/** A filter for deletion records. By default, all records are listed. */
export interface DeletionFilter {
  readonly since?: Date | undefined;
  readonly plantId?: bigint | undefined;
}

/** An import's results. */
export interface ImportCounts {
  readonly added: number;
  /** Number of plants that already existed. */
  readonly present: number;
  /** Number of ids that were skipped because of a deletion record. 0 if the import restores plants. */
  readonly deleted: number;
}

/** Import options. */
export interface ImportOptions {
  /** Restores plants that have a deletion record. Restored plants can be deleted again. */
  readonly restore?: boolean;
}

/** An import in progress. Ids are added batch by batch. */
export interface PlantImport extends AsyncDisposable {
  /** Maximum number of ids per {@link add} call. */
  readonly maxBatch: number;
  /** Stores one batch durably. After an error, some ids may be stored, and the batch can be added again. */
  add(ids: readonly bigint[] | BigInt64Array): Promise<ImportCounts>;
}

/** Imports, exports and listings for operators, while servers use the database. Methods throw {@link StoreOpenError}. */
export interface PlantDatabase extends AsyncDisposable {
  startImport(options?: ImportOptions): Promise<PlantImport>;
  /** Lists all ids in ascending order, from one snapshot, in chunks with at most 10,000 ids. */
  exportPlants(): AsyncIterable<readonly bigint[]>;
  /** Lists deletion records, oldest first, in chunks with at most 10,000 records. */
  listDeletions(filter?: DeletionFilter): AsyncIterable<readonly Deletion[]>;
}

/** Maximum number of rows per chunk. A chunk has a few hundred kilobytes, so the overhead per row is negligible. */
export const maxChunkRows = 10_000;

/** Groups rows into chunks, so that a stream with millions of rows does not take one asynchronous step per row. */
export function* inChunks<Row, Item>(rows: Iterable<Row>, toItem: (row: Row) => Item): Generator<readonly Item[]> {
  let chunk: Item[] = [];
  for (const row of rows) {
    chunk.push(toItem(row));
    if (chunk.length < maxChunkRows) continue;
    yield chunk;
    chunk = [];
  }
  if (chunk.length > 0) yield chunk;
}

/** Wraps a database. Every error becomes a {@link StoreOpenError} with the file or server, described by `describe`. */
export function wrapErrors(name: string, describe: (fault: unknown) => string, database: PlantDatabase): PlantDatabase {
  const fail = (fault: unknown): never => {
    throw fault instanceof StoreOpenError
      ? fault
      : new StoreOpenError(`cannot use ${name}: ${describe(fault)}`, { cause: fault });
  };
  return {
    ...database,
    startImport: async (options) => {
      const running = await database.startImport(options).catch(fail);
      return { ...running, add: (ids) => running.add(ids).catch(fail) };
    },
    exportPlants: () => rethrowing(fail, database.exportPlants()),
    listDeletions: (filter) => rethrowing(fail, database.listDeletions(filter)),
  };
}

/** Yields the items, and calls `fail` with an error of the source. */
export async function* rethrowing<Item>(
  fail: (fault: unknown) => never,
  items: AsyncIterable<Item> | Iterable<Item>,
): AsyncGenerator<Item> {
  try {
    // Errors in the consumer do not reach `catch`, because they only close the iterator.
    yield* items;
  } catch (fault) {
    fail(fault);
  }
}
