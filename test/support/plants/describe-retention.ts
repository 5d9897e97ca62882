import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { closing } from "../../../protoport/testing/src/closing.ts";
import type { PlantStore } from "../../../src/service/plant-store.ts";
import { deleteCall } from "./delete-call.ts";
import type { OpenWithDatabase, StoreDatabase } from "./opened-store.ts";

/** The shortest time for which a store can keep records. */
const deletionsKeptMs = 3_600_000;
/** More days than {@link deletionsKeptMs}. */
const daysOld = 3;

const deleteWith = (store: PlantStore, id: bigint, idempotencyKey: string): Promise<boolean> =>
  store.delete(id, deleteCall({ idempotencyKey }));

/** Waits until a database has the records of these plants, and no others. A store drops records after it is open. */
async function untilRecorded(database: StoreDatabase, plants: readonly bigint[]): Promise<void> {
  await expect.poll(() => database.recorded()).toEqual(plants);
}

/** The facts about stores that keep deletion records for a limited time. */
export function testRetention(open: OpenWithDatabase): void {
  test("are dropped with their idempotency keys only after the retention time", async () => {
    await using opened = await open([1n, 2n, 3n, 4n, 5n]);
    await opened.store.delete(1n, deleteCall());
    await deleteWith(opened.store, 2n, "old");
    await opened.database.age(daysOld);
    await deleteWith(opened.store, 3n, "young");
    // A store may always keep the newest record.
    await opened.store.delete(4n, deleteCall());
    // The first store keeps records for 90 days.
    expect(await opened.database.recorded()).toEqual([1n, 2n, 3n, 4n]);
    await opened.store.close();
    await using again = closing(await opened.reopen({ deletionsKeptMs }));
    await untilRecorded(opened.database, [3n, 4n]);
    await opened.database.run("INSERT INTO plants VALUES (2), (3)");
    await expect(deleteWith(again, 3n, "young")).resolves.toBe(true);
    await expect(deleteWith(again, 2n, "old")).resolves.toBe(true);
    expect(await opened.plants()).toEqual([3n, 5n]);
  });

  test("are dropped after every start", async () => {
    await using opened = await open([1n, 2n, 3n, 12n, 13n]);
    await deleteWith(opened.store, 1n, "key");
    let { store } = opened;
    try {
      for (const id of [2n, 3n]) {
        await opened.database.age(daysOld);
        await store.delete(10n + id, deleteCall());
        await store.close();
        store = await opened.reopen({ deletionsKeptMs });
        await untilRecorded(opened.database, [10n + id]);
        await expect(deleteWith(store, id, "key")).resolves.toBe(true);
      }
      expect(await opened.plants()).toEqual([]);
    } finally {
      await store.close();
    }
  });

  test("free their idempotency keys for all open stores when they are dropped", async () => {
    await using opened = await open([1n, 2n, 3n]);
    await deleteWith(opened.store, 1n, "old");
    await opened.database.age(daysOld);
    await deleteWith(opened.store, 2n, "young");
    await using other = closing(await opened.reopen({ deletionsKeptMs }));
    await untilRecorded(opened.database, [2n]);
    await opened.database.run("INSERT INTO plants VALUES (1), (2)");
    await expect(deleteWith(opened.store, 1n, "old")).resolves.toBe(true);
    await expect(deleteWith(other, 1n, "old")).resolves.toBe(true);
    await expect(deleteWith(other, 2n, "young")).resolves.toBe(true);
    await expect(other.delete(1n, deleteCall({ idempotencyKey: "old", subject: "another" }))).rejects.toMatchObject({
      code: Code.AlreadyExists,
    });
    expect(await opened.plants()).toEqual([2n, 3n]);
  });
}
