import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { importPlants } from "../../src/stores/records/import-plants.ts";
import { checkPlantStore, migratePlants, openPlantDatabase, openPlantStore } from "../../src/stores/index.ts";
import type { PlantLocation } from "../../src/stores/index.ts";
import { StoreOpenError } from "../../src/stores/contract/store-options.ts";
import { readServerUrl } from "../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../src/stores/postgres/server/session.ts";
import { TableLocation } from "../../src/stores/postgres/table-location.ts";
import { closing, collect, createTempFolder, type TempFolder } from "@protoport/testing/process";
import { deleteCall, type PostgresServer, runSql, startPostgres } from "../support/plants/index.ts";

let server: PostgresServer;
let folder: TempFolder;
beforeAll(async () => {
  folder = createTempFolder();
  server = await startPostgres();
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

async function* text(): AsyncGenerator<Uint8Array> {
  yield Buffer.from("1\n2\n3\n");
}

// oxfmt-ignore
const places: readonly {
  name: string;
  locate: () => Promise<PlantLocation>;
  /** Returns a location in which no server could open a store. */
  locateNone: () => Promise<PlantLocation>;
}[] = [
  { name: "an SQLite file", locate: () => Promise.resolve({ kind: "sqlite", path: folder.file("plants.db") }),
    locateNone: () => Promise.resolve({ kind: "sqlite", path: folder.file("nowhere/plants.db") }) },
  { name: "a PostgreSQL database", locate: async () => ({ kind: "postgres", url: await server.createSchema() }),
    locateNone: async () => ({ kind: "postgres", url: await server.createSchema() }) },
];

describe.each(places)("a store in $name", ({ locate, locateNone }) => {
  test("imports, deletes, lists and exports plants after migrate", async () => {
    const location = await locate();
    for (const open of [openPlantStore, openPlantDatabase, checkPlantStore])
      await expect(open(location)).rejects.toThrow(
        /: only if this is a new store, run "plantstore migrate" to create it; otherwise correct the location, or, only if no server has it open, restore it$/,
      );
    const { from, to } = await migratePlants(location);
    expect(from).toBe(0);
    expect(to).toBeGreaterThan(0);
    await expect(migratePlants(location)).resolves.toEqual({ from: to, to });
    const store = await openPlantStore(location);
    await using database = await openPlantDatabase(location);
    await expect(importPlants(database, text())).resolves.toMatchObject({ added: 3, present: 0, deleted: 0 });
    await expect(store.delete(2n, deleteCall({ subject: "ann" }))).resolves.toBe(true);
    await store.close();
    await expect(importPlants(database, text())).resolves.toMatchObject({ added: 0, present: 2, deleted: 1 });
    const [exported] = await collect(database.exportPlants());
    expect(exported).toEqual([1n, 3n]);
    const [listed] = await collect(database.listDeletions());
    expect(listed).toMatchObject([{ plantId: 2n, subject: "ann" }]);
  });

  test("is checked before a server opens it", async () => {
    const location = await locate();
    await migratePlants(location);
    await checkPlantStore(location);
    await expect(checkPlantStore(await locateNone())).rejects.toThrow(StoreOpenError);
  });

  test("requires a retention of at least an hour", async () => {
    const location = await locate();
    await migratePlants(location);
    await expect(openPlantStore(location, { deletionsKeptMs: 3_599_999 })).rejects.toThrow(/must be at least 3600000/);
    await (await openPlantStore(location, { deletionsKeptMs: 3_600_000 })).close();
  });
});

test("a PostgreSQL store connects with the current URL", async () => {
  const url = await server.createSchema();
  await migratePlants({ kind: "postgres", url });
  const former = url.replace("user=tester", "user=former");
  await using store = closing(await openPlantStore({ kind: "postgres", url: former, currentUrl: () => url }));
  await expect(store.delete(1n, deleteCall())).resolves.toBe(false);
});

test("the location of the tables changes only after a table inherits from plants", async () => {
  const url = await server.createPlants();
  await using session = closing(new Session(readServerUrl(url)));
  const location = new TableLocation();
  const first = await location.tablesOn(session);
  await expect(location.refresh(session)).resolves.toBe(first);
  await runSql(url, "CREATE TABLE seedlings () INHERITS (plants)");
  await expect(location.refresh(session)).resolves.not.toBe(first);
});
