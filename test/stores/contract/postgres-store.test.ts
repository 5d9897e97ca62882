import { describe, expect, test } from "vitest";
import { openPostgresDatabase } from "../../../src/stores/postgres/all-plants/plant-database.ts";
import { openPostgresStore } from "../../../src/stores/postgres/postgres-store.ts";
import { deleteCall } from "../../support/plants/delete-call.ts";
import { testKilled } from "../../support/plants/describe-durable-store.ts";
import { describePlantDatabase } from "../../support/plants/describe-plant-database.ts";
import { describePlantStore } from "../../support/plants/describe-plant-store.ts";
import { openStoreWith, startPostgresOfFile } from "../../support/plants/postgres-of-file.ts";
import { openClient } from "../../support/plants/postgres-server.ts";

const server = await startPostgresOfFile();

describePlantStore((plants) => openStoreWith(server, plants));

describePlantDatabase(async () => {
  const url = await server.createPlants();
  return { store: await openPostgresStore({ url }), database: await openPostgresDatabase(url) };
});

describe("a store whose URL sets synchronous_commit to off", () => {
  testKilled((plants) =>
    openStoreWith(server, plants, (url) => url.replace("options=", "options=-csynchronous_commit%3Doff%20")),
  );
});

test("a locked plant is deleted when unlocked, and delays no other deletion", async () => {
  await using opened = await openStoreWith(server, [1n, 2n, 3n]);
  const other = await openClient(opened.url, "BEGIN; SELECT FROM plants WHERE id = 1 FOR UPDATE");
  const locked = opened.store.delete(1n, deleteCall());
  await expect(Promise.all([2n, 3n].map((id) => opened.store.delete(id, deleteCall())))).resolves.toEqual([true, true]);
  expect(await opened.plants()).toEqual([1n]);
  await other.query("COMMIT");
  await expect(locked).resolves.toBe(true);
  await other.end();
});

test("all deletions for a locked plant wait, then one gets true", async () => {
  await using opened = await openStoreWith(server, [1n]);
  const other = await openClient(opened.url, "BEGIN; SELECT FROM plants WHERE id = 1 FOR UPDATE");
  // The first two are sent alone, and the others in one batch.
  const deletions = Array.from({ length: 5 }, () => opened.store.delete(1n, deleteCall()));
  await expect.poll(() => opened.store.waiting?.forLock).toBe(deletions.length);
  await other.query("COMMIT");
  const outcomes = await Promise.all(deletions);
  expect(outcomes.filter(Boolean)).toEqual([true]);
  expect(await opened.plants()).toEqual([]);
  await other.end();
});
