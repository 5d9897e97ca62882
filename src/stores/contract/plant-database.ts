/** A deletion record. */
export interface Deletion {
  readonly plantId: bigint;
  readonly deletedAt: Date;
  /** The principal's id as text. */
  readonly subject: string;
  readonly requestId: string;
  /** Equal for all deletions that were committed together. */
  readonly batch: string;
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
  readonly batchMax: number;
  /** Stores one batch durably. After an error, some ids may be stored, and the batch can be added again. */
  add(ids: readonly bigint[] | BigInt64Array): Promise<ImportCounts>;
}

/**
 * Imports, exports and listings for operators, while servers use the database. All rows are streamed.
 *
 * Every method throws {@link StoreOpenError} with a message for the operator when the database fails.
 */
export interface PlantDatabase extends AsyncDisposable {
  startImport(options?: ImportOptions): Promise<PlantImport>;
  /** Lists all ids in ascending order, from one snapshot, in chunks with at most 10,000 ids. */
  exportPlants(): AsyncIterable<readonly bigint[]>;
  /** Lists deletion records, oldest first, in chunks with at most 10,000 records. */
  listDeletions(filter?: DeletionFilter): AsyncIterable<readonly Deletion[]>;
}
