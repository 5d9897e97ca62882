import type { ImportCounts, ImportOptions, PlantDatabase } from "../contract/plant-database.ts";
import { readIds } from "./read-ids.ts";

/**
 * Imports plants from text with one id per line. Each batch is durable before the next batch is read.
 *
 * @param options - `onBatch` is called after each durable batch, with its number of ids and the counts so far
 * @returns the whole import's counts
 * @throws InvalidLineError at the first line that is not an id. No id from the same batch is stored
 * @throws StoreOpenError when the database fails
 */
export async function importPlants(
  database: PlantDatabase,
  text: AsyncIterable<Uint8Array>,
  options: ImportOptions & { readonly onBatch?: (ids: number, counts: ImportCounts) => void } = {},
): Promise<ImportCounts> {
  await using plantImport = await database.startImport(options);
  const totals = { added: 0, present: 0, deleted: 0 };
  for await (const ids of readIds(text, plantImport.batchMax)) {
    const counts = await plantImport.add(ids);
    totals.added += counts.added;
    totals.present += counts.present;
    totals.deleted += counts.deleted;
    options.onBatch?.(ids.length, totals);
  }
  return totals;
}
