/** A deletion's record. */
export interface Deletion {
  readonly plantId: bigint;
  readonly deletedAt: Date;
  /** The principal's id as text. */
  readonly subject: string;
  readonly requestId: string;
  /** Equal for all deletions that were committed together. */
  readonly batch: string;
}

/** Which deletion records are listed. By default all. */
export interface DeletionFilter {
  /** Only records since this time. */
  readonly since?: Date | undefined;
  /** Only this plant's records. */
  readonly plantId?: bigint | undefined;
}

/** An import's results. */
export interface ImportCounts {
  /** Plants that are new. */
  readonly added: number;
  /** Plants that already existed. */
  readonly present: number;
  /** Ids with a deletion record, which stay deleted unless the import restores them. */
  readonly deleted: number;
}

/** Import options. */
export interface ImportOptions {
  /** Restores plants that have a deletion record. They can be deleted again. */
  readonly restore?: boolean;
}

/** An import in progress. Ids are added batch by batch. */
export interface PlantImport extends AsyncDisposable {
  /** Maximum number of ids per {@link add} call. */
  readonly batchMax: number;
  /** Stores one batch durably. If it rejects, a part may be stored. The batch can then be added again. */
  add(ids: readonly bigint[] | BigInt64Array): Promise<ImportCounts>;
}

/**
 * The operations on all plants, for operators, while servers keep running. Everything is streamed. Memory does not
 * depend on how many plants there are.
 *
 * Every method throws {@link StoreOpenError} with a message for the operator when the database fails.
 */
export interface PlantDatabase extends AsyncDisposable {
  startImport(options?: ImportOptions): Promise<PlantImport>;
  /** Lists all ids in ascending order, from one snapshot, in chunks with at most 10,000. */
  exportPlants(): AsyncIterable<readonly bigint[]>;
  /** Lists deletion records, oldest first, in chunks with at most 10,000. */
  listDeletions(filter?: DeletionFilter): AsyncIterable<readonly Deletion[]>;
}
