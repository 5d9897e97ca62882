import { describe, expect, test } from "vitest";
import { openPlantStore, type PlantLocation } from "../../../src/stores/index.ts";
import { closing, createTempFolder } from "@protoport/testing/process";
import { deleteCall, startPostgresOfFile } from "../../support/plants/index.ts";
import { type Ended, runCommand } from "../../support/process/run-command.ts";

const server = await startPostgresOfFile();

interface EmptyDatabase extends Disposable {
  readonly url: string;
  readonly location: PlantLocation;
}

const databases: Readonly<Record<PlantLocation["kind"], () => Promise<EmptyDatabase>>> = {
  sqlite: async () => {
    const folder = createTempFolder();
    const path = folder.file("plants.db");
    return {
      url: `sqlite:${path}`,
      location: { kind: "sqlite", path },
      [Symbol.dispose]: () => folder[Symbol.dispose](),
    };
  },
  postgres: async () => {
    const url = await server.createSchema();
    return { url, location: { kind: "postgres", url }, [Symbol.dispose]: () => undefined };
  },
};

function commandsOn(url: string): (words: string, input?: string) => Promise<Ended> {
  return (words, input) => runCommand(words.split(" "), { DATABASE_URL: url }, input);
}

async function deletePlants(location: PlantLocation, ids: readonly bigint[]): Promise<void> {
  await using store = closing(await openPlantStore(location));
  for (const id of ids) await store.delete(id, deleteCall());
}

describe.each(Object.entries(databases))("the commands on a %s store", (_kind, openEmpty) => {
  test("migrate creates a store that check accepts, and changes nothing when repeated", async () => {
    using database = await openEmpty();
    const run = commandsOn(database.url);
    expect((await run("check")).exitCode).not.toBe(0);
    const want = { exitCode: 0, err: [expect.stringMatching(/^migrated the schema from/)] };
    expect(await run("migrate")).toMatchObject(want);
    expect(await run("migrate")).toMatchObject({ exitCode: 0, err: [expect.stringMatching(/^nothing to migrate/)] });
    expect(await run("export")).toEqual({ exitCode: 0, out: [], err: [] });
    expect(await run("check")).toMatchObject({ exitCode: 0 });
  });

  test("export prints the imported plants that were not deleted", async () => {
    using database = await openEmpty();
    const run = commandsOn(database.url);
    await run("migrate");
    expect(await run("import", "1\n2\n-9223372036854775808\n9223372036854775807\n")).toMatchObject({ exitCode: 0 });
    await deletePlants(database.location, [2n, 9n]);
    expect((await run("export")).out).toEqual(["-9223372036854775808", "1", "9223372036854775807"]);
  });

  test("deletions prints each deletion, and import skips deleted plants without --restore", async () => {
    using database = await openEmpty();
    const run = commandsOn(database.url);
    await run("migrate");
    await run("import", "1\n2\n3\n");
    await deletePlants(database.location, [2n, 1n, 7n]);
    const { out } = await run("deletions");
    expect(out.map((line) => JSON.parse(line))).toMatchObject([
      { plantId: "2", subject: "tester", requestId: "request-1" },
      { plantId: "1", subject: "tester", requestId: "request-1" },
    ]);
    expect((await run("import", "1\n2\n3\n")).out).toEqual(["0 added, 1 already present, 2 skipped (deleted before)"]);
    const want = ["1 added, 0 already present, 0 skipped (deleted before)"];
    expect((await run("import - --restore", "2\n")).out).toEqual(want);
    expect((await run("export")).out).toEqual(["2", "3"]);
  });
});

test("restore replaces an SQLite store's plants and records with the backup's", async () => {
  using database = await databases.sqlite();
  using folder = createTempFolder();
  const run = commandsOn(database.url);
  await run("migrate");
  await run("import", "1\n2\n3\n");
  await deletePlants(database.location, [3n]);
  expect(await run(`backup ${folder.file("copy.db")}`)).toMatchObject({ exitCode: 0 });
  await deletePlants(database.location, [1n]);
  await run("import", "77\n");
  const want = { exitCode: 0, err: [expect.stringMatching(/^restored .+ from .+copy\.db$/)] };
  expect(await run(`restore ${folder.file("copy.db")}`)).toMatchObject(want);
  expect((await run("export")).out).toEqual(["1", "2"]);
  expect((await run("deletions")).out.map((line) => JSON.parse(line).plantId)).toEqual(["3"]);
});
