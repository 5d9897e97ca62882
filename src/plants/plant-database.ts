/** One plant that was deleted, and who asked for it. */
export interface Deletion {
  readonly plantId: bigint;
  readonly deletedAt: Date;
  /** The principal's id text. */
  readonly subject: string;
  readonly requestId: string;
  /** What was committed together has the same batch. */
  readonly batch: string;
}

/** What became of imported ids. */
export interface ImportCounts {
  /** Plants that are there now and were not before. */
  readonly added: number;
  /** Plants that were there already. */
  readonly present: number;
  /** Ids with a deletion record, which an import that does not restore leaves deleted. */
  readonly deleted: number;
}

/** How to import. */
export interface ImportOptions {
  /** Brings back plants that have a deletion record. They can be deleted again. */
  readonly restore?: boolean;
}

/** An import in progress: ids go in batch by batch. */
export interface PlantImport extends AsyncDisposable {
  /** Stores one batch in one transaction, durably. Repeating a batch changes nothing. */
  add(ids: readonly bigint[]): Promise<ImportCounts>;
}

/**
 * What an operator does with the plants as a whole, beside a server that goes on serving. Everything
 * streams: memory does not grow with the number of plants.
 *
 * Every method throws {@link StoreOpenError} with words for the operator when the data cannot be worked with.
 */
export interface PlantDatabase extends AsyncDisposable {
  /** Starts an import. */
  startImport(options?: ImportOptions): Promise<PlantImport>;
  /** All ids of one moment in ascending order, in runs of at most 10,000. */
  exportPlants(): AsyncIterable<readonly bigint[]>;
  /** The deletion records since a moment, oldest first, in runs of at most 10,000. */
  listDeletions(since?: Date): AsyncIterable<readonly Deletion[]>;
}
