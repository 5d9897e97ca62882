import { afterAll, expect, test } from "vitest";
import { openDatabase } from "../../../src/stores/sqlite/database.ts";
import { movePlants, reopenPlants } from "../../../src/stores/records/move-plants.ts";
import { describeMoves } from "../../support/plants/describe-moves.ts";
// oxfmt-ignore
import { batchSizesOf, interruptMove, move, openWithoutThread, plantsOf, reopen, sqliteIn,
  storesOpenedBy, withMovable } from "../../support/plants/moved-stores.ts";
import { createTempFolder } from "@protoport/testing/process";

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());
const sqlite = sqliteIn(folder);

const { deleteFrom } = storesOpenedBy(openWithoutThread);

describeMoves(sqlite, sqlite, openWithoutThread);

async function* twoChunks() {
  yield* [[1n, 2n], [3n]];
}

/** Creates a store with plants 1 to 3 and an empty one. */
async function createStores() {
  const [from, to] = [{ kind: "sqlite", path: folder.file(crypto.randomUUID()) } as const, await sqlite.create()];
  openDatabase({ file: from.path, plantsWhenCreated: { first: 1n, last: 3n } }).close();
  return { from, to };
}

test("a move leaves the target empty when the stores' counts differ", async () => {
  const { from, to } = await createStores();
  // SQLite does not count rows that a trigger adds as rows of the statement.
  await sqlite.run(
    to,
    "CREATE TRIGGER extra AFTER INSERT ON plants WHEN new.id = 1 BEGIN INSERT INTO plants VALUES (9); END",
  );
  const want = / has 4 plants, .* expected 3 plants, .*; nothing was moved; run the same/;
  await expect(move(from, to)).rejects.toThrow(want);
  expect(await plantsOf(to)).toEqual([]);
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

test("a move reports the rows so far, and stops when another command undoes it after the source was marked", async () => {
  const { from, to } = await createStores();
  const rows: unknown[] = [];
  const undone = withMovable(from, to, (source, target) => {
    let begun = 0;
    const begin: typeof target.begin = async (isSnapshot) => {
      if (++begun === 2) await reopen(from, to);
      await target.begin(isSnapshot);
    };
    return movePlants(source, { ...target, begin });
  });
  await expect(undone).rejects.toThrow(/: another command has changed its mark; run the same/);
  await withMovable(from, to, (source, target) =>
    movePlants({ ...source, plants: twoChunks }, target, (what, count) => rows.push([what, count])),
  );
  expect(rows).toEqual([
    ["plants", 2],
    ["plants", 3],
  ]);
});
