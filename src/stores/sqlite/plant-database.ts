import type { DatabaseSync, SQLOutputValue } from "node:sqlite";
import { inChunks } from "../records/in-chunks.ts";
import { wrapErrors } from "../records/wrap-errors.ts";
import type { Deletion, DeletionFilter, PlantDatabase } from "../contract/plant-database.ts";
import type { Versions } from "../contract/schema-version.ts";
import { idsIn, openDatabase, toBigInt } from "./database.ts";
import { startImport } from "./import.ts";
import { asideProblemIn, schemaProblemOf, versionOf } from "./migrate.ts";
import { claimFile } from "./open-once.ts";
import { fileProblemOf } from "./problem.ts";

/** Opens a store's file for commands, even while a server uses it. @throws StoreOpenError if it is not a store */
export async function openSqliteDatabase(file: string): Promise<PlantDatabase> {
  const opened = new DisposableStack();
  const db = opened.use(openDatabase({ file, isAside: true }));
  opened.use(claimFile(file));
  return wrapErrors(file, (fault) => (schemaProblemOf(db) ?? fileProblemOf(fault)).text, {
    startImport: async (options = {}) => startImport(openDatabase({ file }), options),
    exportPlants: async function* () {
      yield* idsIn(db, asideProblemIn(db) === undefined ? "plants" : "moved_plants");
    },
    listDeletions: (filter = {}) => listDeletions(db, filter),
    [Symbol.asyncDispose]: async () => opened.dispose(),
  });
}

/** Creates or migrates a store's file, and returns the versions before and after. @throws StoreOpenError */
export function migrateSqlite(file: string): Versions {
  let migratedFrom: number | undefined;
  using db = openDatabase({ file, migrates: true }, (from) => (migratedFrom = from));
  const { version: to } = versionOf(db);
  return { from: migratedFrom ?? to, to };
}

async function* listDeletions(
  db: DatabaseSync,
  { since, plantId }: DeletionFilter,
): AsyncGenerator<readonly Deletion[]> {
  // Reads all records even for a single plant. An index by plant would make every deletion more expensive.
  const rows = db.prepare(
    "SELECT * FROM deletions WHERE deleted_at >= ?1 AND plant_id = ifnull(?2, plant_id) ORDER BY deleted_at, seq",
  );
  yield* inChunks(rows.iterate(since?.getTime() ?? 0, plantId ?? null), toDeletion);
}

function toDeletion(row: Record<string, SQLOutputValue>): Deletion {
  return {
    plantId: toBigInt(row["plant_id"]),
    deletedAt: new Date(Number(row["deleted_at"])),
    subject: String(row["subject"]),
    requestId: String(row["request_id"]),
    batch: String(row["batch"]),
  };
}
