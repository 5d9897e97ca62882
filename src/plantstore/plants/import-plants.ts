import type { ImportCounts, ImportOptions, PlantDatabase } from "./plant-database.ts";
import { readIds } from "./read-ids.ts";

/** The progress of an import. */
export interface ImportProgress extends ImportCounts {
  /** Bytes of the input that have been stored. */
  readonly bytes: number;
}

/**
 * Imports plants from text with one id per line. Each batch is durable before the next one is read, so an interrupted
 * import can simply be run again.
 *
 * @returns the counts of the whole import
 * @throws BadLine at the first line that is not an id; nothing of its batch is stored
 * @throws StoreOpenError when the database fails
 */
export async function importPlants(
  database: PlantDatabase,
  text: AsyncIterable<Uint8Array>,
  options: ImportOptions & { readonly onProgress?: (progress: ImportProgress) => void } = {},
): Promise<ImportProgress> {
  await using running = await database.startImport(options);
  let progress: ImportProgress = { added: 0, present: 0, deleted: 0, bytes: 0 };
  for await (const { ids, bytes } of readIds(text)) {
    const counts = await running.add(ids);
    progress = {
      added: progress.added + counts.added,
      present: progress.present + counts.present,
      deleted: progress.deleted + counts.deleted,
      bytes,
    };
    options.onProgress?.(progress);
  }
  return progress;
}
