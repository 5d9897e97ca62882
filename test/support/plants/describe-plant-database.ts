import { beforeAll, describe, expect, test } from "vitest";
import type { PlantDatabase } from "../../../src/stores/contract/plant-database.ts";
import type { PlantStore } from "../../../src/service/plant-store.ts";
import { collect } from "../../../protoport/testing/src/collect.ts";
import { shared } from "../../../protoport/testing/src/shared.ts";
import { deleteCall } from "./delete-call.ts";

/** An empty store, and the database as the operator sees it. */
export interface OpenedDatabase {
  readonly store: PlantStore;
  readonly database: PlantDatabase;
  /** The folder that contains them. They are closed before it is disposed of. */
  readonly folder?: Disposable;
}

const int64Min = -(2n ** 63n);
const maxInt64 = 2n ** 63n - 1n;

/** Describes what holds for every {@link PlantDatabase}. `openEmpty` opens an empty store. */
export function describePlantDatabase(openEmpty: () => Promise<OpenedDatabase>): void {
  const open = async (plants: readonly bigint[] = []): Promise<OpenedDatabase & AsyncDisposable> => {
    const { store, database, folder } = await openEmpty();
    if (plants.length > 0) await importInto(database, [plants]);
    const close = async (): Promise<void> => {
      await database[Symbol.asyncDispose]();
      await store.close();
      folder?.[Symbol.dispose]();
    };
    return { store, database, [Symbol.asyncDispose]: close };
  };

  describe("a plant database", () => {
    test("imports ids exactly and exports them in ascending order", async () => {
      await using opened = await open();
      const ids = [5n, maxInt64, -1n, 2n ** 53n + 1n, int64Min, 0n];
      await expect(importInto(opened.database, [ids])).resolves.toEqual([{ added: 6, present: 0, deleted: 0 }]);
      expect(await exported(opened.database)).toEqual([int64Min, -1n, 0n, 5n, 2n ** 53n + 1n, maxInt64]);
    });

    test("imports each plant once, and counts duplicates as existing plants", async () => {
      await using opened = await open([1n, 2n]);
      const want = [
        { added: 1, present: 2, deleted: 0 },
        { added: 0, present: 1, deleted: 0 },
      ];
      await expect(importInto(opened.database, [[2n, 3n, 3n], [3n]])).resolves.toEqual(want);
      expect(await exported(opened.database)).toEqual([1n, 2n, 3n]);
    });

    test("does not restore plants that were deleted before or during the import", async () => {
      await using opened = await open([1n, 2n, 3n]);
      await opened.store.delete(1n, deleteCall());
      await using running = await opened.database.startImport();
      await expect(running.add([1n, 2n, 3n])).resolves.toEqual({ added: 0, present: 2, deleted: 1 });
      await opened.store.delete(2n, deleteCall());
      await expect(running.add([1n, 2n, 3n, 4n])).resolves.toEqual({ added: 1, present: 1, deleted: 2 });
      expect(await exported(opened.database)).toEqual([3n, 4n]);
    });

    test.each([
      ["close to each other", [-2n, -1n, 0n, 1n], [-1n], 2n],
      ["in a range with deleted ends", [5n, 6n, 7n, 8n], [5n, 8n], 9n],
      ["far from each other", [-(2n ** 63n), -7n, 0n, 2n ** 63n - 1n], [-(2n ** 63n), 0n], 9n],
    ])("imports ids %s without the deleted plants", async (_where, ids, deleted, fresh) => {
      await using opened = await open(ids);
      for (const id of deleted) await opened.store.delete(id, deleteCall());
      const presentAndFresh = [...ids.filter((id) => !deleted.includes(id)), fresh];
      await expect(importInto(opened.database, [ids, presentAndFresh])).resolves.toEqual([
        { added: 0, present: ids.length - deleted.length, deleted: deleted.length },
        { added: 1, present: presentAndFresh.length - 1, deleted: 0 },
      ]);
      expect(await exported(opened.database)).toEqual(presentAndFresh.toSorted((one, other) => (one < other ? -1 : 1)));
    });

    test("restores deleted plants if requested, and can delete them again", async () => {
      await using opened = await open([1n, 3n]);
      await opened.store.delete(1n, deleteCall());
      await using restoring = await opened.database.startImport({ restore: true });
      await expect(restoring.add([1n, 2n, 3n, 3n])).resolves.toEqual({ added: 2, present: 2, deleted: 0 });
      await expect(opened.store.delete(1n, deleteCall())).resolves.toBe(true);
      expect(await exported(opened.database)).toEqual([2n, 3n]);
    });

    test("keeps a restored plant when its deletion is repeated with the same key", async () => {
      await using opened = await open([1n, 2n]);
      const call = deleteCall({ idempotencyKey: "key" });
      await opened.store.delete(1n, call);
      await using restoring = await opened.database.startImport({ restore: true });
      await restoring.add([1n]);
      await expect(opened.store.delete(1n, call)).resolves.toBe(true);
      expect(await exported(opened.database)).toEqual([1n, 2n]);
      await expect(opened.store.delete(1n, deleteCall({ idempotencyKey: "new" }))).resolves.toBe(true);
      expect(await exported(opened.database)).toEqual([2n]);
      expect((await collect(opened.database.listDeletions())).flat()).toHaveLength(2);
    });

    test("keeps restored plants when the same ids are imported again", async () => {
      await using opened = await open([1n, 2n]);
      await opened.store.delete(1n, deleteCall());
      await using restoring = await opened.database.startImport({ restore: true });
      await restoring.add([1n]);
      const want = [{ added: 0, present: 1, deleted: 2 }];
      await expect(importInto(opened.database, [[1n, 1n, 2n]])).resolves.toEqual(want);
      expect(await exported(opened.database)).toEqual([1n, 2n]);
    });

    test("keeps restored plants when adjacent ids are imported", async () => {
      await using opened = await open([1n, 3n]);
      await opened.store.delete(3n, deleteCall());
      await using restoring = await opened.database.startImport({ restore: true });
      await restoring.add([3n]);
      const want = [{ added: 2, present: 1, deleted: 0 }];
      await expect(importInto(opened.database, [[1n, 2n, 4n]])).resolves.toEqual(want);
      expect(await exported(opened.database)).toEqual([1n, 2n, 3n, 4n]);
    });

    test("does not restore a deleted plant that is imported with new plants", async () => {
      await using opened = await open([1n, 2n]);
      await opened.store.delete(1n, deleteCall());
      await expect(importInto(opened.database, [[1n, 5n]])).resolves.toEqual([{ added: 1, present: 0, deleted: 1 }]);
      expect(await exported(opened.database)).toEqual([2n, 5n]);
    });

    test("accepts an empty batch, and exports no empty chunk", async () => {
      await using opened = await open();
      await expect(collect(opened.database.exportPlants())).resolves.toEqual([]);
      const want = [
        { added: 0, present: 0, deleted: 0 },
        { added: 1, present: 0, deleted: 0 },
      ];
      await expect(importInto(opened.database, [[], [1n]])).resolves.toEqual(want);
    });

    test("exports many plants exactly once, in chunks", async () => {
      const ids = Array.from({ length: 25_000 }, (_, i) => BigInt(i * 3 - 30_000));
      await using opened = await open(ids);
      const runs = await collect(opened.database.exportPlants());
      expect(runs.map((run) => run.length)).toEqual([10_000, 10_000, 5_000]);
      expect(runs.flat()).toEqual(ids);
    });

    test("exports a snapshot despite deletions during the export", async () => {
      const ids = Array.from({ length: 25_000 }, (_, i) => BigInt(i));
      await using opened = await open(ids);
      const received: bigint[] = [];
      for await (const run of opened.database.exportPlants()) {
        if (received.length === 0) await opened.store.delete(24_999n, deleteCall());
        received.push(...run);
      }
      expect(received).toEqual(ids);
    });

    test("lists who deleted which plant, oldest first", async () => {
      await using opened = await open([1n, int64Min, 3n]);
      const before = Date.now();
      await opened.store.delete(int64Min, deleteCall({ subject: "ann", requestId: "r-1" }));
      await opened.store.delete(2n, deleteCall({ subject: "bob", requestId: "r-2" }));
      await opened.store.delete(1n, deleteCall({ subject: "bob\0'\"{},\\", requestId: "r-3" }));
      const listed = (await collect(opened.database.listDeletions())).flat();
      expect(listed).toEqual(
        // oxfmt-ignore
        [
          { plantId: int64Min, deletedAtUs: expect.any(BigInt), subject: "ann", requestId: "r-1",
            batch: expect.any(String) },
          {
            plantId: 1n,
            deletedAtUs: expect.any(BigInt),
            // PostgreSQL cannot store U+0000, so no store keeps it.
            subject: "bob\uFFFD'\"{},\\",
            requestId: "r-3",
            batch: expect.any(String),
          },
        ],
      );
      expect(listed[0]?.batch).not.toEqual(listed[1]?.batch);
      for (const { deletedAtUs } of listed) {
        // A database server has a separate clock.
        expect(Math.abs(Number(deletedAtUs) / 1_000 - before)).toBeLessThan(60_000);
      }
    });

    test("records exactly the caller whose deletion succeeded", async () => {
      await using opened = await open([1n, 2n]);
      // While the first is committed, the others become one batch.
      const subjects = Array.from({ length: 20 }, (_, i) => `caller-${i}`);
      const first = opened.store.delete(2n, deleteCall());
      const outcomes = await Promise.all(subjects.map((subject) => opened.store.delete(1n, deleteCall({ subject }))));
      await first;
      const listed = (await collect(opened.database.listDeletions())).flat().filter(({ plantId }) => plantId === 1n);
      expect(listed.map(({ subject }) => subject)).toEqual(subjects.filter((_, i) => outcomes[i]));
      expect(listed).toHaveLength(1);
    });

    describe("a subject and a request id", () => {
      const opened = shared(() => open(Array.from({ length: 100 }, (_, i) => BigInt(i + 1))));
      let next = 1n;

      test.each([
        { name: "U+0000", text: "a\0b", kept: "a\uFFFDb" },
        { name: "lone surrogates", text: "a\uD83Cb\uDF31", kept: "a\uFFFDb\uFFFD" },
        { name: "a character beyond 16 bits", text: "🌱", kept: "🌱" },
        { name: "array and JSON syntax", text: '{NULL,"\\"}\n\t,\'', kept: '{NULL,"\\"}\n\t,\'' },
        { name: "an empty string", text: "", kept: "" },
        { name: "1,024 characters", text: "é".repeat(1_024), kept: "é".repeat(1_024) },
        { name: "1,025 characters", text: "é".repeat(1_025), kept: `${"é".repeat(1_023)}…` },
        { name: "a surrogate pair across the limit", text: "🌱".repeat(600), kept: `${"🌱".repeat(511)}\uFFFD…` },
      ])("with $name are recorded, and do not affect other deletions", async ({ text, kept }) => {
        const { database, store } = opened;
        const ids = [next++, next++, next++, next++];
        const call = deleteCall({ subject: text, requestId: text });
        // The first is sent alone, so the call with the text is the last in a batch of three.
        const outcomes = ids.map((id) => store.delete(id, id === ids[3] ? call : deleteCall()));
        await expect(Promise.all(outcomes)).resolves.toEqual([true, true, true, true]);
        const listed = (await collect(database.listDeletions())).flat().filter(({ plantId }) => ids.includes(plantId));
        expect(listed).toHaveLength(4);
        expect(listed.find(({ plantId }) => plantId === ids[3])).toMatchObject({ subject: kept, requestId: kept });
      });
    });

    describe("listing deletions", () => {
      const opened = shared(() => open([1n]));
      beforeAll(() => opened.store.delete(1n, deleteCall()));

      // oxfmt-ignore
      test.each([
        { since: new Date(0), listed: 1 }, { since: new Date("0000-01-01T00:00:00Z"), listed: 1 },
        { since: new Date("0000-01-01T00:00:00+23:59"), listed: 1 }, { since: new Date(-8.64e15), listed: 1 },
        { since: new Date("9999-12-31T23:59:59-23:59"), listed: 0 }, { since: new Date(8.64e15), listed: 0 },
      ])("since $since lists $listed of one deletion", async ({ since, listed }) => {
        expect((await collect(opened.database.listDeletions({ since }))).flat()).toHaveLength(listed);
      });
    });

    test.each([int64Min, 2n, maxInt64])("for plant %s lists only its deletions", async (plantId) => {
      await using opened = await open([int64Min, 1n, 2n, maxInt64]);
      for (const id of [int64Min, 1n, 2n, maxInt64]) await opened.store.delete(id, deleteCall());
      const listed = (await collect(opened.database.listDeletions({ plantId }))).flat();
      expect(listed.map((deletion) => deletion.plantId)).toEqual([plantId]);
      const late = { plantId, since: new Date("2999-01-01") };
      expect((await collect(opened.database.listDeletions(late))).flat()).toEqual([]);
    });

    test("lists the deletions since a time", async () => {
      await using opened = await open([1n, 2n]);
      await opened.store.delete(1n, deleteCall());
      const [first] = (await collect(opened.database.listDeletions())).flat();
      const firstMs = Math.floor(Number(first?.deletedAtUs) / 1_000);
      const afterFirst = new Date(firstMs + 1);
      while (Date.now() <= afterFirst.getTime()) await new Promise(setImmediate);
      await opened.store.delete(2n, deleteCall());
      const listed = (await collect(opened.database.listDeletions({ since: afterFirst }))).flat();
      expect(listed.map(({ plantId }) => plantId)).toEqual([2n]);
      // The time that a record is listed with is not before the record.
      const both = (await collect(opened.database.listDeletions({ since: new Date(firstMs) }))).flat();
      expect(both.map(({ plantId }) => plantId)).toEqual([1n, 2n]);
    });
  });
}

async function importInto(database: PlantDatabase, batches: readonly (readonly bigint[])[]): Promise<unknown[]> {
  await using running = await database.startImport();
  const counts = [];
  for (const batch of batches) counts.push(await running.add(batch));
  return counts;
}

const exported = async (database: PlantDatabase): Promise<bigint[]> => (await collect(database.exportPlants())).flat();
