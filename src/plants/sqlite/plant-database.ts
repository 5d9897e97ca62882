import { inOperatorWords } from "../operator-words.ts";
import type { PlantDatabase } from "../plant-database.ts";
import { openExistingDatabase } from "./database.ts";
import { listDeletions } from "./deletions.ts";
import { exportPlants } from "./export.ts";
import { startImport } from "./import.ts";
import { fileProblemOf } from "./problem.ts";

// The first record can be no older.
const beginning = new Date(0);

/**
 * Opens a store's file for an operator, beside the server that may be using it.
 *
 * @throws StoreOpenError when there is no such file, or it is no plant store
 */
export async function openSqliteDatabase(file: string): Promise<PlantDatabase> {
  const db = openExistingDatabase(file);
  return inOperatorWords(file, (fault) => fileProblemOf(fault).text, {
    startImport: async (options = {}) => startImport(openExistingDatabase(file), options),
    exportPlants: () => exportPlants(db),
    listDeletions: (since = beginning) => listDeletions(db, since),
    [Symbol.asyncDispose]: async () => db.close(),
  });
}
