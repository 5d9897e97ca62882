import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { openLockedStore, openPlantStore, type PlantLocation } from "../../../../../../src/stores/index.ts";
import { createTempFolder } from "../../../../../../protoport/testing/src/process/temp-folder.ts";
import {
  batchSizesOf,
  createUsedStore,
  deleteFrom,
  kindsOf,
  move,
  plantsOf,
  recordsOf,
  urlOf,
} from "../../../../../support/plants/moved-stores.ts";
import { runSql } from "../../../../../support/plants/postgres-server.ts";
import { startPostgresOfFile } from "../../../../../support/plants/postgres-of-file.ts";

const server = await startPostgresOfFile();
const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());
const { sqlite, postgres } = kindsOf(folder, server);

test("move refuses a store that an idle server uses", async () => {
  const source = await createUsedStore(postgres);
  const store = await openPlantStore(source);
  const locked = openLockedStore(source, { isReadOnly: true });
  await expect(locked).rejects.toThrow(/another session writes to it/);
  await store.close();
});

test("a server does not open a store that is being moved", async () => {
  const source = await createUsedStore(sqlite);
  await using _ = await openLockedStore(source, { isReadOnly: true });
  await expect(openPlantStore(source)).rejects.toThrow(/another process holds the lock on the file/);
});

test("a second move cannot lock a store that the first has locked", async () => {
  const source = await createUsedStore(postgres);
  await using _ = await openLockedStore(source, { isReadOnly: true, watchMs: 0 });
  const second = openLockedStore(source, { isReadOnly: true, watchMs: 0 });
  await expect(second).rejects.toThrow(/another transaction holds a lock on a table/);
});

test.each([
  {
    name: "PostgreSQL record",
    to: postgres,
    sql: `CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RETURN CASE WHEN NEW.plant_id = 3 THEN NULL ELSE NEW END; END $$;
          CREATE TRIGGER skip BEFORE INSERT ON deletions FOR EACH ROW EXECUTE FUNCTION skip()`,
    stored: "2 of 3 deletion records",
  },
  {
    name: "PostgreSQL plant",
    to: postgres,
    sql: `CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RETURN CASE WHEN NEW.id = 3 THEN NULL ELSE NEW END; END $$;
          CREATE TRIGGER skip BEFORE INSERT ON plants FOR EACH ROW EXECUTE FUNCTION skip()`,
    stored: "3 of 4 plants",
  },
  {
    name: "SQLite record",
    to: sqlite,
    sql: "CREATE TRIGGER skip BEFORE INSERT ON deletions WHEN NEW.plant_id = 3 BEGIN SELECT RAISE(IGNORE); END",
    stored: "2 of 3 deletion records",
  },
  {
    name: "SQLite key",
    to: sqlite,
    sql: "CREATE TRIGGER skip BEFORE INSERT ON idempotency_keys BEGIN SELECT RAISE(IGNORE); END",
    stored: "2 of 3 deletion records",
  },
  {
    name: "SQLite plant",
    to: sqlite,
    sql: "CREATE TRIGGER skip BEFORE INSERT ON plants WHEN NEW.id = 3 BEGIN SELECT RAISE(IGNORE); END",
    stored: "3 of 4 plants",
  },
])("a move changes nothing if a trigger drops $name rows", async ({ to, sql, stored }) => {
  const [source, target] = [await createUsedStore(sqlite), await to.create()];
  await to.run(target, sql);
  await expect(move(source, target)).rejects.toThrow(
    `stored ${stored}, probably because of a trigger; nothing was moved`,
  );
  expect([await plantsOf(target), await recordsOf(target)]).toEqual([[], []]);
});

test.each([
  {
    name: "changes a record",
    sql: `CREATE TRIGGER lose AFTER INSERT ON deletions WHEN NEW.plant_id = 4
            BEGIN DELETE FROM deletions WHERE seq = 1; END`,
    counts: "4 plants, 2 deletion records and 0 idempotency keys, expected 4 plants, 3 deletion records and 1",
  },
  {
    name: "removes a plant",
    sql: "CREATE TRIGGER lose AFTER INSERT ON plants WHEN NEW.id = 3 BEGIN DELETE FROM plants WHERE id = 1; END",
    counts: "3 plants, 3 deletion records and 1 idempotency keys, expected 4 plants, 3 deletion records and 1",
  },
])("a move changes nothing when a trigger $name during the move", async ({ sql, counts }) => {
  const [source, target] = [await createUsedStore(sqlite), await sqlite.create()];
  await sqlite.run(target, sql);
  await expect(move(source, target)).rejects.toThrow(counts);
  expect([await plantsOf(target), await recordsOf(target)]).toEqual([[], []]);
});

test("a move changes nothing if a source record has two keys", async () => {
  const [source, target] = [await createUsedStore(sqlite), await sqlite.create()];
  await sqlite.run(source, "INSERT INTO idempotency_keys SELECT 'second', seq, deleted_at FROM idempotency_keys");
  await expect(move(source, target)).rejects.toThrow(
    /has 4 plants, 3 deletion records and 2 idempotency keys, expected 4 plants, 4 deletion records and 2/,
  );
  expect([await plantsOf(target), await recordsOf(target)]).toEqual([[], []]);
});

test.each([
  { name: "before the first chunk", chunks: 0 },
  { name: "after the last chunk", chunks: 1 },
])("a session that starts to write $name stops the move", async ({ chunks }) => {
  const source = await createUsedStore(postgres);
  const url = urlOf(source);
  await using locked = await openLockedStore(source, { isReadOnly: true, watchMs: 0 });
  const reader = locked.plants()[Symbol.asyncIterator]();
  for (let read = 0; read < chunks; read += 1) await reader.next();
  const deleting = runSql(url, "DELETE FROM plants WHERE id = 1");
  const waiting = "SELECT FROM pg_locks WHERE relation = 'plants'::regclass AND NOT granted";
  await expect.poll(() => runSql(url, waiting)).toHaveLength(1);
  await expect(reader.next()).rejects.toThrow(/another session writes to it/);
  await locked[Symbol.asyncDispose]();
  await deleting;
});

test("a slow target does not trigger the source role's idle timeout", async () => {
  const source = await createUsedStore(postgres);
  const owner = urlOf(source);
  await runSql(
    owner,
    "CREATE ROLE hasty SUPERUSER LOGIN; ALTER ROLE hasty SET idle_in_transaction_session_timeout = '1s'",
  );
  const hasty: PlantLocation = { kind: "postgres", url: owner.replace("user=tester", "user=hasty") };
  await using locked = await openLockedStore(hasty, { isReadOnly: true, watchMs: 0 });
  // As long as a slow target takes to store a chunk.
  await sleep(1_500);
  await expect(locked.count()).resolves.toEqual({ plants: 4, records: 3, keys: 1 });
});

test("a move fails when row security hides source rows", async () => {
  const source = await createUsedStore(postgres);
  const owner = urlOf(source);
  await runSql(
    owner,
    `CREATE ROLE mover LOGIN; GRANT ALL ON SCHEMA ${/plants_\d+/.exec(owner)?.[0]} TO mover;
     GRANT ALL ON plants, deletions, plantstore_schema TO mover;
     ALTER TABLE plants ENABLE ROW LEVEL SECURITY; CREATE POLICY hide_first ON plants USING (id > 1)`,
  );
  const hidden: PlantLocation = { kind: "postgres", url: owner.replace("user=tester", "user=mover") };
  await expect(move(hidden, await sqlite.create())).rejects.toThrow(/row security may hide rows of the table plants/);
  await runSql(owner, "ALTER TABLE plants DISABLE ROW LEVEL SECURITY");
  await expect(move(hidden, await sqlite.create())).resolves.toMatchObject({ plants: 4 });
});

test.each([
  { name: "an unlogged table", sql: "ALTER TABLE plants SET UNLOGGED", problem: /the table plants is unlogged/ },
  {
    name: "a rule",
    sql: "CREATE RULE kept AS ON DELETE TO plants DO INSTEAD NOTHING",
    problem: /the rule kept replaces statements on the table plants/,
  },
])("a move from a database with $name succeeds, and a move to it fails", async ({ sql, problem }) => {
  const [store, other] = [await createUsedStore(postgres), await sqlite.create()];
  await runSql(urlOf(store), sql);
  await expect(move(store, other)).resolves.toMatchObject({ plants: 4 });
  await expect(move(other, store)).rejects.toThrow(problem);
});

test("a server continues the batch numbers after a move", async () => {
  const [source, target] = [await createUsedStore(postgres), await sqlite.create()];
  await move(source, target);
  await deleteFrom(target, [1n], [3n]);
  expect(await batchSizesOf(target)).toEqual([1, 1, 1, 1, 1]);
});
