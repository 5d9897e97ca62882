import { afterAll, expect, test } from "vitest";
import { openDatabase } from "../../../src/stores/sqlite/database.ts";
import { movePlants, reopenPlants } from "../../../src/stores/records/move-plants.ts";
import { describeMoves } from "../../support/plants/describe-moves.ts";
// oxfmt-ignore
import { batchSizesOf, interruptMove, key, move, openWithoutThread, pathOf, plantsOf, recordsOf, reopen, sqliteIn,
  storesOpenedBy, withMovable } from "../../support/plants/moved-stores.ts";
import { readSqlite } from "../../support/plants/sqlite-file.ts";
import { createTempFolder } from "@protoport/testing/process";

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());
const sqlite = sqliteIn(folder);

const { createUsedStore, deleteFrom } = storesOpenedBy(openWithoutThread);

describeMoves(sqlite, sqlite, openWithoutThread);

async function* oneByOne<Row>(chunks: AsyncIterable<readonly Row[]>) {
  for await (const chunk of chunks) for (const row of chunk) yield [row];
}

/** Creates a store with plants 1 to 3 and an empty one. */
async function createStores() {
  const [from, to] = [{ kind: "sqlite", path: folder.file(crypto.randomUUID()) } as const, await sqlite.create()];
  openDatabase({ file: from.path, plantsWhenCreated: { first: 1n, last: 3n } }).close();
  return { from, to };
}

// SQLite does not count rows that a trigger adds or removes as rows of the statement.
// oxfmt-ignore
test.for([
  ["adds a plant", "AFTER INSERT ON plants WHEN NEW.id = 3 BEGIN INSERT INTO plants VALUES (9); END", [5, 3, 1]],
  ["skips a plant", "BEFORE INSERT ON plants WHEN NEW.id = 3 BEGIN SELECT RAISE(IGNORE); END", [3, 3, 1]],
  ["removes a plant", "AFTER INSERT ON plants WHEN NEW.id = 3 BEGIN DELETE FROM plants WHERE id = 1; END", [3, 3, 1]],
  ["skips a record", "BEFORE INSERT ON deletions WHEN NEW.plant_id = 3 BEGIN SELECT RAISE(IGNORE); END", [4, 2, 1]],
  ["removes a record", "AFTER INSERT ON deletions WHEN NEW.plant_id = 4 BEGIN DELETE FROM deletions WHERE seq = 1; END",
    [4, 2, 0]],
  ["skips a key", "BEFORE INSERT ON idempotency_keys BEGIN SELECT RAISE(IGNORE); END", [4, 3, 0]],
] as const)("a move changes nothing if a trigger in the target %s", async ([, trigger, [plants, records, keys]]) => {
  const [from, to] = [await createUsedStore(sqlite), await sqlite.create()];
  await sqlite.run(to, `CREATE TRIGGER changing ${trigger}`);
  const found = `it has ${plants} plants, ${records} deletion records and ${keys} idempotency keys`;
  const expected = "expected 4 plants, 3 deletion records and 1 idempotency keys; nothing was moved; run the same";
  await expect(move(from, to)).rejects.toThrow(`${found}, ${expected}`);
  expect([await plantsOf(to), await recordsOf(to)]).toEqual([[], []]);
});

test("a move changes nothing if a source record has two keys", async () => {
  const [from, to] = [await createUsedStore(sqlite), await sqlite.create()];
  await sqlite.run(from, "INSERT INTO idempotency_keys SELECT 'second', seq, deleted_at FROM idempotency_keys");
  await expect(move(from, to)).rejects.toThrow(
    /has 4 plants, 4 deletion records and 2 idempotency keys, expected 4 plants, 3 deletion records and 2/,
  );
  expect([await plantsOf(to), await recordsOf(to)]).toEqual([[], []]);
});

test("a batch after a move has its own number even if the clock was set back before the move", async () => {
  const { from, to } = await createStores();
  await deleteFrom(from, [1n]);
  await sqlite.run(from, "UPDATE deletions SET deleted_at = deleted_at + 60000");
  await deleteFrom(from, [2n]);
  await move(from, to);
  await deleteFrom(to, [3n]);
  expect(await batchSizesOf(to)).toEqual([1, 1, 1]);
});

test("an interrupted undoing continues even after another move to the target was undone", async () => {
  const [{ from, to }, { from: other }] = [await createStores(), await createStores()];
  await interruptMove(from, to);
  const undoing = withMovable(from, to, (source, target) =>
    reopenPlants({ ...source, run: () => Promise.reject(new Error("interrupted")) }, target),
  );
  await expect(undoing).rejects.toThrow("interrupted");
  await interruptMove(other, to);
  await reopen(other, to);
  await reopen(from, to);
  await expect(move(from, to)).resolves.toMatchObject({ plants: 3 });
});

const markChanged = /: another command has changed its mark/;

// The marks of a source are read before each of its transactions, and again before the commit in the target.
test.for([
  ["a move stops if the source was moved elsewhere before it is marked", 2, movePlants, /: it was moved to elsewhere/],
  ["a move stops if the source's mark changes before the copy", 3, movePlants, markChanged],
  ["a move stops if the source's mark changes in the copy", 4, movePlants, markChanged],
  ["an undoing stops if the source's mark changes", 2, reopenPlants, markChanged],
] as const)("%s", async ([, changed, run, problem]) => {
  const { from, to } = await createStores();
  if (run === reopenPlants) await interruptMove(from, to);
  let reads = 0;
  const running = withMovable<unknown>(from, to, (source, target) => {
    const get: typeof source.get = async (sql) =>
      sql.includes("moved_to") && ++reads === changed ? ["id id elsewhere", null, ""] : await source.get(sql);
    return run({ ...source, get }, target);
  });
  await expect(running).rejects.toThrow(problem);
  expect(reads).toBe(changed);
  expect(await plantsOf(from)).toHaveLength(3);
  expect(await plantsOf(to)).toEqual([]);
});

test("a move reports the rows so far, and ends its transactions", async () => {
  const from = await createUsedStore(sqlite);
  const rows: string[] = [];
  await withMovable(from, await sqlite.create(), async (source, target) => {
    const [plants, records] = [() => oneByOne(source.plants()), () => oneByOne(source.records())];
    await movePlants({ ...source, plants, records }, target, (what, count) => rows.push(`${count} ${what}`));
    await expect(movePlants(source, target)).resolves.toBeUndefined();
  });
  const records = ["1 deletion records", "2 deletion records", "3 deletion records"];
  expect(rows).toEqual([...records, "1 plants", "2 plants", "3 plants", "4 plants"]);
});

test("a move to SQLite replaces a key that retention left, and keeps the low 62 bits of a batch's UUID", async () => {
  const [from, to] = [await createUsedStore(sqlite), await sqlite.create()];
  await sqlite.run(to, "INSERT INTO idempotency_keys VALUES ('key-of-2', 99, 5)");
  await withMovable(from, to, (source, target) => {
    const insertRecords: typeof target.insertRecords = (records) =>
      target.insertRecords(records.map((record) => ({ ...record, batch: "ffffffff-ffff-ffff-ffff-ffffffffffff" })));
    return movePlants(source, { ...target, insertRecords });
  });
  await expect(deleteFrom(to, [2n, key], [1n])).resolves.toEqual([true, true]);
  const batches = readSqlite(pathOf(to), "SELECT DISTINCT batch FROM deletions ORDER BY batch");
  expect(batches).toEqual([{ batch: 2n ** 62n - 1n }, { batch: 2n ** 62n }]);
});
