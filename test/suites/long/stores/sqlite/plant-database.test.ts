import { existsSync, readdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { backUp } from "../../../../../src/stores/sqlite/backup.ts";
import { openDatabase } from "../../../../../src/stores/sqlite/database.ts";
import { openSqliteDatabase } from "../../../../../src/stores/sqlite/plant-database.ts";
import { openSqliteStore } from "../../../../../src/stores/sqlite/sqlite-store.ts";
import { deleteCall } from "../../../../support/plants/delete-call.ts";
import { describePlantDatabase } from "../../../../support/plants/describe-plant-database.ts";
import { plantsIn, readSqlite } from "../../../../support/plants/sqlite-file.ts";
import { closing, createTempFolder } from "@protoport/testing/process";

describePlantDatabase(async () => {
  const folder = createTempFolder();
  const file = folder.file("plants.db");
  return { store: await openSqliteStore({ file, migrates: true }), database: await openSqliteDatabase(file), folder };
});

describe("an SQLite database", () => {
  test("is not created by commands other than migrate", async () => {
    using folder = createTempFolder();
    await expect(openSqliteDatabase(folder.file("plants.db"))).rejects.toThrow(
      /file not found in \S+: only if this is a new store, run "plantstore migrate" to create it; otherwise correct the location, or, only if no server has it open, restore it$/,
    );
    expect(existsSync(folder.file("plants.db"))).toBe(false);
  });

  test("is closed after its readers finish, even if they stop early", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    openDatabase({ file, plantsWhenCreated: { first: 1n, last: 20_000n } }).close();
    {
      await using database = await openSqliteDatabase(file);
      await using running = await database.startImport();
      await running.add([30_000n]);
      for await (const ids of database.exportPlants()) {
        expect(ids).toHaveLength(10_000);
        break;
      }
    }
    // The last connection that closes removes the log.
    expect(readdirSync(folder.path)).toEqual(["plants.db"]);
  });

  test("allows a server to delete during an import", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const transactions = 12;
    const store = await openSqliteStore({ file, plantsWhenCreated: { first: 1n, last: 10_000n } });
    await using database = await openSqliteDatabase(file);
    await using running = await database.startImport();
    const over = new AbortController();
    let deleted = 0n;
    const deleting = (async () => {
      while (!over.signal.aborted) if (await store.delete(deleted + 1n, deleteCall())) deleted++;
    })();
    await running.add(Array.from({ length: transactions * 10_000 }, (_, i) => BigInt(20_000 + i)));
    over.abort();
    await deleting;
    await store.close();
    // One deletion per gap is sufficient. Without gaps, the server would get the lock only once or twice, by chance.
    expect(Number(deleted)).toBeGreaterThan(transactions / 2);
  });

  test("inserts import batches sorted by id", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    using db = openDatabase({ file, migrates: true });
    db.exec(`CREATE TABLE inserted (seq INTEGER PRIMARY KEY, id INTEGER);
             CREATE TRIGGER note AFTER INSERT ON plants BEGIN INSERT INTO inserted (id) VALUES (new.id); END`);
    await using database = await openSqliteDatabase(file);
    await using running = await database.startImport();
    // More ids than a transaction has. Multiplying by the prime 7,919 puts them out of order.
    const count = 12_007n;
    const ids = Array.from({ length: Number(count) }, (_, i) => ((BigInt(i) * 7_919n) % count) - 5_000n);
    await running.add(ids);
    const inserted = db.prepare("SELECT id FROM inserted ORDER BY seq").all();
    expect(inserted.map(({ id }) => id)).toEqual(Array.from(ids.keys(), (i) => BigInt(i) - 5_000n));
  });
});

describe("backing up", () => {
  test("copies a consistent snapshot during deletions", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const store = await openSqliteStore({ file, plantsWhenCreated: { first: 1n, last: 20_000n } });
    const before = await Promise.all([1n, 2n, 3n].map((id) => store.delete(id, deleteCall())));
    // Two batches. With more, a machine that stalls for a second would look like an overloaded store.
    const during = Promise.all(Array.from({ length: 2_000 }, (_, i) => store.delete(BigInt(i + 4), deleteCall())));
    backUp(file, folder.file("copy.db"));
    expect([...before, ...(await during)]).not.toContain(false);
    await store.close();
    const copied = new Set(plantsIn(folder.file("copy.db")));
    const deleted = readSqlite(folder.file("copy.db"), "SELECT plant_id FROM deletions ORDER BY plant_id");
    // The copy is a single snapshot, so each plant is either in it or in its deletion records.
    expect(copied.size + deleted.length).toBe(20_000);
    expect(deleted.length).toBeGreaterThanOrEqual(3);

    // No other files remain.
    expect(readdirSync(folder.path).toSorted()).toEqual(["copy.db", "plants.db"]);
    await using restored = closing(await openSqliteStore({ file: folder.file("copy.db") }));
    await expect(restored.delete(1n, deleteCall())).resolves.toBe(false);
    await expect(restored.delete(20_000n, deleteCall())).resolves.toBe(true);
  });
});
