import { renameSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { importPlants } from "../../../src/stores/records/import-plants.ts";
import type { ImportOptions, PlantDatabase, PlantImport } from "../../../src/stores/contract/plant-database.ts";
import { openDatabase } from "../../../src/stores/sqlite/database.ts";
import { openSqliteStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import { openSqliteDatabase } from "../../../src/stores/sqlite/plant-database.ts";
import { deleteCall } from "../../support/plants/delete-call.ts";
import { createMissingStore, plantsIn, runSqlite } from "../../support/plants/sqlite-file.ts";
import { collect, createTempFolder } from "@protoport/testing/process";

/** Opens a file's database, which imports 10,000 ids per batch. */
async function openInBatches(file: string): Promise<PlantDatabase> {
  const database = await openSqliteDatabase(file);
  const startImport = async (options?: ImportOptions): Promise<PlantImport> => {
    return { ...(await database.startImport(options)), maxBatch: 10_000 };
  };
  return { ...database, startImport };
}

async function* textOf(...chunks: string[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield Buffer.from(chunk);
}

describe("importing plants", () => {
  test("sums the counts over batches, and reports each durable batch", async () => {
    using folder = createTempFolder();
    openDatabase({ file: folder.file("plants.db"), migrates: true }).close();
    await using database = await openInBatches(folder.file("plants.db"));
    const text = Array.from({ length: 12_000 }, (_, i) => `${i % 11_000}\n`).join("");
    const batches: unknown[] = [];
    const onBatch = (ids: number, soFar: object): void =>
      void batches.push([ids, plantsIn(folder.file("plants.db")).length, { ...soFar }]);
    const counts = await importPlants(database, textOf(text), { onBatch });
    expect(counts).toEqual({ added: 11_000, present: 1_000, deleted: 0 });
    const first = { added: 10_000, present: 0, deleted: 0 };
    // oxfmt-ignore
    expect(batches).toEqual([[10_000, 10_000, first], [2_000, 11_000, counts]]);
  });

  test("counts the deleted plants that it skips, or restores them if requested", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const store = await openSqliteStore({ file, plantsWhenCreated: { first: 0n, last: 20_999n } });
    await Promise.all([1n, 2n, 15_000n, 20_500n].map((id) => store.delete(id, deleteCall())));
    await store.close();
    await using database = await openInBatches(file);
    const lines = Array.from({ length: 21_000 }, (_, i) => `${i}\n`).join("");
    const present = 20_996;
    await expect(importPlants(database, textOf(lines))).resolves.toEqual({ present, added: 0, deleted: 4 });
    const restored = importPlants(database, textOf(lines), { restore: true });
    await expect(restored).resolves.toEqual({ present, added: 4, deleted: 0 });
    expect(plantsIn(file)).toHaveLength(21_000);
  });

  test("skips a plant that is deleted between a batch's transactions", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    createMissingStore(file);
    await using database = await openSqliteDatabase(file);
    await using running = await database.startImport();
    const adding = running.add(Array.from({ length: 10_001 }, (_, i) => BigInt(i)));
    // The first transaction has added 10,000 ids, and the second has not begun.
    runSqlite(file, "INSERT INTO deletions VALUES (1, 10000, 0, '', '', 1)");
    await expect(adding).resolves.toEqual({ added: 10_000, present: 0, deleted: 1 });
  });

  test("stops at an invalid line, keeps earlier batches, and can be repeated", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    openDatabase({ file, migrates: true }).close();
    await using database = await openInBatches(file);
    const lines = Array.from({ length: 15_000 }, (_, i) => `${i}\n`);
    const bad = importPlants(database, textOf(lines.join(""), "oak\n"));
    await expect(bad).rejects.toThrow('line 15001 is not a plant id: "oak"');
    expect(plantsIn(file)).toHaveLength(10_000);
    expect(await importPlants(database, textOf(lines.join("")))).toMatchObject({ added: 5_000, present: 10_000 });
    expect(plantsIn(file)).toHaveLength(15_000);
  });

  test("reads each deletion record once", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const db = openDatabase({ file, migrates: true });
    db.exec("INSERT INTO deletions VALUES (1, 1, 0, '', '', 1)");
    await using database = await openSqliteDatabase(file);
    await using running = await database.startImport();
    expect(await running.add([1n])).toEqual({ added: 0, present: 0, deleted: 1 });
    // Each later record is read once, and earlier records are not read again.
    db.exec("UPDATE deletions SET plant_id = 2; INSERT INTO deletions VALUES (2, 3, 0, '', '', 2)");
    db.close();
    expect(await running.add([1n, 2n, 3n])).toEqual({ added: 1, present: 0, deleted: 2 });
  });

  test("reports errors with the name of the file", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    openDatabase({ file, migrates: true }).close();
    await using database = await openSqliteDatabase(file);
    await using running = await database.startImport();
    runSqlite(file, "ALTER TABLE plants RENAME TO moved_plants; UPDATE plantstore_schema SET moved_to = 'id id there'");
    await expect(running.add([1n])).rejects.toThrow(`cannot use ${file}: it was moved to there: use that store`);
    runSqlite(file, "UPDATE plantstore_schema SET moved_to = NULL");
    const want = `cannot use ${file}: no such table: plants`;
    await expect(running.add([1n])).rejects.toThrow(want);
    await expect(collect(database.exportPlants())).rejects.toThrow(want);
    runSqlite(file, "DROP TABLE deletions");
    await expect(collect(database.listDeletions())).rejects.toThrow(`cannot use ${file}: no such table: deletions`);
    renameSync(file, `${file}.moved`);
    await expect(database.startImport()).rejects.toThrow(/^cannot open \S+: file not found in /);
  });
});
