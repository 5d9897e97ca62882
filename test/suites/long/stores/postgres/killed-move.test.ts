import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { openPlantDatabase, openPlantStore, type PlantLocation } from "../../../../../src/stores/index.ts";
import { openDatabase } from "../../../../../src/stores/sqlite/database.ts";
import { collect } from "../../../../../protoport/testing/src/collect.ts";
import { projectFolder } from "../../../../../protoport/testing/src/process/child-program.ts";
import { type CommandLine, startNode } from "../../../../../protoport/testing/src/process/command-line.ts";
import { createTempFolder } from "../../../../../protoport/testing/src/process/temp-folder.ts";
import { deleteCall } from "../../../../support/plants/delete-call.ts";
import { openClient, runSql } from "../../../../support/plants/postgres-server.ts";
import { startPostgresOfFile } from "../../../../support/plants/postgres-of-file.ts";

const server = await startPostgresOfFile();
const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());

const key = { idempotencyKey: "key-of-2", subject: "ann" };
const plantCount = 60_000n;

/** Creates a store with many plants, of which one was deleted with a key. */
async function createSource(): Promise<PlantLocation> {
  const path = folder.file(`source-${crypto.randomUUID()}.db`);
  openDatabase({ file: path, plantsWhenCreated: { first: 1n, last: plantCount } }).close();
  const source: PlantLocation = { kind: "sqlite", path };
  const store = await openPlantStore(source);
  await store.delete(2n, deleteCall(key));
  await store.close();
  return source;
}

function startMove(source: PlantLocation, target: PlantLocation): CommandLine {
  const main = join(projectFolder, "test/support/plants/move-and-print.ts");
  return startNode([main, JSON.stringify(source), JSON.stringify(target)], folder.path);
}

async function killed(moving: CommandLine): Promise<void> {
  moving.process.kill("SIGKILL");
  await moving.end();
}

async function contentOf(location: PlantLocation): Promise<{ readonly plants: number; readonly deleted: bigint[] }> {
  await using database = await openPlantDatabase(location);
  const plants = (await collect(database.exportPlants())).flat().length;
  const deleted = (await collect(database.listDeletions())).flat().map(({ plantId }) => plantId);
  return { plants, deleted };
}

async function expectMoved(source: PlantLocation, target: PlantLocation): Promise<void> {
  if ((await contentOf(target)).plants === 0) {
    await using again = startMove(source, target);
    await expect(again.end()).resolves.toBe(0);
  }
  expect(await contentOf(target)).toEqual({ plants: Number(plantCount) - 1, deleted: [2n] });
  const store = await openPlantStore(target);
  await expect(store.delete(2n, deleteCall(key))).resolves.toBe(true);
  await expect(store.delete(2n, deleteCall())).resolves.toBe(false);
  await store.close();
}

test("a killed move to PostgreSQL can be repeated", async () => {
  const source = await createSource();
  const url = await server.createPlants();
  const target: PlantLocation = { kind: "postgres", url };
  // The first move waits in its transaction for this lock.
  const holder = await openClient(
    url,
    `CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NULL; END $$;
     CREATE TRIGGER wait BEFORE INSERT ON plants FOR EACH STATEMENT EXECUTE FUNCTION wait();
     SELECT pg_advisory_lock(7)`,
  );
  await using moving = startMove(source, target);
  const waiting = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
  await expect.poll(() => runSql(url, waiting)).toHaveLength(1);
  await killed(moving);
  await holder.end();
  await expect
    .poll(() => runSql(url, "SELECT FROM pg_locks WHERE mode = 'ExclusiveLock' AND relation = 'plants'::regclass"))
    .toEqual([]);
  expect(await contentOf(target)).toEqual({ plants: 0, deleted: [] });
  await expectMoved(source, target);
});

test("a killed move to SQLite can be repeated", async () => {
  const source = await createSource();
  const path = folder.file("target.db");
  openDatabase({ file: path, migrates: true }).close();
  const target: PlantLocation = { kind: "sqlite", path };
  await using moving = startMove(source, target);
  await expect.poll(() => existsSync(`${path}-journal`), { interval: 1 }).toBe(true);
  await killed(moving);
  // The move completed before the signal, or it changed nothing.
  expect([0, Number(plantCount) - 1]).toContain((await contentOf(target)).plants);
  await expectMoved(source, target);
});
