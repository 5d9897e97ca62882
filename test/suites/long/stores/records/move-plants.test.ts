import { afterAll, describe, expect, test } from "vitest";
import { openPlantStore } from "../../../../../src/stores/index.ts";
import type { PlantStore } from "../../../../../src/service/index.ts";
import { createTempFolder } from "../../../../../protoport/testing/src/process/temp-folder.ts";
import { deleteCall } from "../../../../support/plants/delete-call.ts";
import {
  batchSizesOf,
  createUsedStore,
  deleteFrom,
  importInto,
  key,
  kindsOf,
  move,
  plantsOf,
  recordsOf,
} from "../../../../support/plants/moved-stores.ts";
import { startPostgresOfFile } from "../../../../support/plants/postgres-of-file.ts";

const server = await startPostgresOfFile();
const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());
const { sqlite, postgres } = kindsOf(folder, server);

const directions = [
  { from: sqlite, to: postgres },
  { from: postgres, to: sqlite },
  { from: sqlite, to: sqlite },
  { from: postgres, to: postgres },
].map(({ from, to }) => ({ name: `from ${from.kind} to ${to.kind}`, from, to }));

/** Maximum time until a server that writes without pause is found, in milliseconds. */
const servedMs = 5_000;

async function deleteWithoutPause(store: PlantStore, signal: AbortSignal): Promise<void> {
  // Deletions fail while the tables are locked.
  while (!signal.aborted) await store.delete(77n, deleteCall()).catch(() => undefined);
}

describe.each(directions)("a move $name", ({ from, to }) => {
  test("keeps plants, restored plants and deletion records", async () => {
    const [source, target] = [await createUsedStore(from), await to.create()];
    const before = { plants: await plantsOf(source), records: await recordsOf(source) };
    await expect(move(source, target)).resolves.toEqual({ plants: 4, records: 3, keys: 1 });
    expect({ plants: await plantsOf(target), records: await recordsOf(target) }).toEqual(before);
    expect({ plants: await plantsOf(source), records: await recordsOf(source) }).toEqual(before);
  });

  test("keeps the idempotency keys' results", async () => {
    const [source, target] = [await createUsedStore(from), await to.create()];
    await move(source, target);
    await expect(deleteFrom(target, [2n, key], [2n], [3n, { subject: "bob" }], [3n])).resolves.toEqual([
      true,
      false,
      true,
      false,
    ]);
    await expect(deleteFrom(target, [1n, key])).rejects.toThrow(/key/);
  });

  test("is refused when repeated, and changes nothing", async () => {
    const [source, target] = [await createUsedStore(from), await to.create()];
    await move(source, target);
    const before = { plants: await plantsOf(target), records: await recordsOf(target) };
    await expect(move(source, target)).rejects.toThrow(
      / has 4 plants, 3 deletion records and 1 idempotency keys, as many as the source; .*; nothing was moved$/,
    );
    expect({ plants: await plantsOf(target), records: await recordsOf(target) }).toEqual(before);
  });

  // A plant without a record may have been deleted long ago. Retention has dropped the record.
  test.each([
    { name: "a plant is only in the source", sql: "DELETE FROM plants WHERE id = 1" },
    { name: "a plant is only in the target", sql: "INSERT INTO plants VALUES (7)" },
    { name: "a record is only in the source", sql: "DELETE FROM deletions WHERE plant_id = 3" },
    { name: "the target's plants were deleted", sql: "DELETE FROM plants" },
  ])("is refused if $name after the first move", async ({ sql }) => {
    const [source, target] = [await createUsedStore(from), await to.create()];
    await move(source, target);
    await to.run(target, sql);
    const before = { plants: await plantsOf(target), records: await recordsOf(target) };
    await expect(move(source, target)).rejects.toThrow(
      /, which are not those of the source: move to a new store; nothing was moved$/,
    );
    expect({ plants: await plantsOf(target), records: await recordsOf(target) }).toEqual(before);
  });

  test("moves more rows than one chunk contains", async () => {
    const [source, target] = [await from.create(), await to.create()];
    const ids = Array.from({ length: 20_001 }, (_, i) => BigInt(i));
    await importInto(source, ids);
    const store = await openPlantStore(source);
    for (let at = 0; at < 10_001; at += 1_000) {
      const batch = ids.slice(at, Math.min(at + 1_000, 10_001));
      await Promise.all(batch.map((id) => store.delete(id, deleteCall({ idempotencyKey: `key-${id}` }))));
    }
    await store.close();
    const counts = { plants: 10_000, records: 10_001, keys: 10_001 };
    await expect(move(source, target)).resolves.toEqual(counts);
    expect(await plantsOf(target)).toEqual(ids.slice(10_001));
    expect(await recordsOf(target)).toEqual(await recordsOf(source));
    expect(await batchSizesOf(target)).toEqual(await batchSizesOf(source));
  });

  test.each(["source", "target"])("is refused while the %s is used", async (served) => {
    const [source, target] = [await createUsedStore(from), await to.create()];
    const used = served === "source" ? source : target;
    const store = await openPlantStore(used);
    const deleting = new AbortController();
    const ended = deleteWithoutPause(store, deleting.signal);
    const isServed =
      "url" in used
        ? /another session writes to it \(process \d+ of plantstore\); stop all servers/
        : /has .+\.db open/;
    await expect(move(source, target, { [`${served}Ms`]: servedMs })).rejects.toThrow(isServed);
    deleting.abort();
    await ended;
    await store.close();
    expect([await plantsOf(target), await recordsOf(target)]).toEqual([[], []]);
  });

  test("is refused if source and target are the same store", async () => {
    const source = await createUsedStore(from);
    await expect(move(source, source)).rejects.toThrow(/is both the source and the target/);
  });
});
