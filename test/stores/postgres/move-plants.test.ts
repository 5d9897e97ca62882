import { afterAll, describe, expect, test } from "vitest";
import { openPlantStore } from "../../../src/stores/plant-location.ts";
import type { PlantStore } from "../../../src/service/index.ts";
import { createTempFolder } from "../../../packages/testing/src/process/temp-folder.ts";
import { deleteCall } from "../../support/plants/delete-call.ts";
import {
  batchSizesOf,
  createUsedStore,
  deleteFrom,
  importInto,
  int64Max,
  int64Min,
  key,
  kindsOf,
  move,
  plantsOf,
  recordsOf,
} from "../../support/plants/moved-stores.ts";
import { startPostgresOfFile } from "../../support/plants/postgres-of-file.ts";

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

/** The most time until a server that writes without pause is found, in milliseconds. */
const servedMs = 5_000;

async function deleteWithoutPause(store: PlantStore, signal: AbortSignal): Promise<void> {
  // Deletions fail while the tables are locked.
  while (!signal.aborted) await store.delete(77n, deleteCall()).catch(() => undefined);
}

describe.each(directions)("a move $name", ({ from, to }) => {
  test("keeps plants, restored plants and deletion records", async () => {
    const [source, target] = [await createUsedStore(from), await to.create()];
    const before = { plants: await plantsOf(source), records: await recordsOf(source) };
    await expect(move(source, target)).resolves.toEqual({
      plants: { added: 4, present: 0, deleted: 0, removed: 0 },
      records: { added: 3, present: 0 },
      keys: 1,
    });
    expect({ plants: await plantsOf(target), records: await recordsOf(target) }).toEqual(before);
    expect({ plants: await plantsOf(source), records: await recordsOf(source) }).toEqual(before);
  });

  test("keeps the results of idempotency keys", async () => {
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

  test("adds nothing when it is repeated", async () => {
    const [source, target] = [await createUsedStore(from), await to.create()];
    await move(source, target);
    const before = { plants: await plantsOf(target), records: await recordsOf(target) };
    await expect(move(source, target)).resolves.toEqual({
      plants: { added: 0, present: 4, deleted: 0, removed: 0 },
      records: { added: 0, present: 3 },
      keys: 1,
    });
    expect({ plants: await plantsOf(target), records: await recordsOf(target) }).toEqual(before);
  });

  test("does not restore plants that were deleted in the target", async () => {
    const [source, target] = [await createUsedStore(from), await to.create()];
    await move(source, target);
    // Plant 3 was restored in the source, so both stores have an earlier record.
    await deleteFrom(target, [1n], [3n]);
    const { plants } = await move(source, target);
    expect(plants).toEqual({ added: 0, present: 2, deleted: 2, removed: 0 });
    expect(await plantsOf(target)).toEqual([int64Min, int64Max]);
  });

  test("removes plants that were deleted in the source since an earlier move", async () => {
    const [source, target] = [await createUsedStore(from), await to.create()];
    await move(source, target);
    await importInto(source, [7n]);
    await importInto(target, [8n]);
    await deleteFrom(source, [1n], [3n], [int64Min]);
    await importInto(source, [int64Min], true);
    const { plants, records } = await move(source, target);
    expect({ plants, records }).toEqual({
      plants: { added: 1, present: 2, deleted: 0, removed: 2 },
      records: { added: 3, present: 3 },
    });
    expect(await plantsOf(target)).toEqual([int64Min, 7n, 8n, int64Max]);
    await move(source, target);
    expect(await plantsOf(target)).toEqual([int64Min, 7n, 8n, int64Max]);
  });

  test("does not restore plants that only the target has deleted", async () => {
    const [source, target] = [await createUsedStore(from), await to.create()];
    await importInto(target, [1n, 4n, 9n]);
    await deleteFrom(target, [9n], [1n]);
    const { plants } = await move(source, target);
    expect(plants).toEqual({ added: 3, present: 0, deleted: 1, removed: 1 });
    expect(await plantsOf(target)).toEqual([int64Min, 3n, int64Max]);
  });

  test("changes nothing when a key belongs to another deletion in the target", async () => {
    const [source, target] = [await createUsedStore(from), await to.create()];
    await importInto(target, [1n]);
    await deleteFrom(target, [1n, key]);
    await expect(move(source, target)).rejects.toThrow(
      /^an idempotency key of the source belongs to another deletion in .+: move to an empty store$/,
    );
    expect([await plantsOf(target), await recordsOf(target)]).toMatchObject([[], [{ plantId: 1n }]]);
  });

  test("moves more rows than a chunk has", async () => {
    const [source, target] = [await from.create(), await to.create()];
    const ids = Array.from({ length: 20_001 }, (_, i) => BigInt(i));
    await importInto(source, ids);
    const store = await openPlantStore(source);
    for (let at = 0; at < 10_001; at += 1_000) {
      const batch = ids.slice(at, Math.min(at + 1_000, 10_001));
      await Promise.all(batch.map((id) => store.delete(id, deleteCall({ idempotencyKey: `key-${id}` }))));
    }
    await store.close();
    const counts = { plants: { added: 10_000 }, records: { added: 10_001 }, keys: 10_001 };
    await expect(move(source, target)).resolves.toMatchObject(counts);
    expect(await plantsOf(target)).toEqual(ids.slice(10_001));
    expect(await recordsOf(target)).toEqual(await recordsOf(source));
    expect(await batchSizesOf(target)).toEqual(await batchSizesOf(source));
    await expect(move(source, target)).resolves.toMatchObject({ plants: { added: 0 }, records: { added: 0 } });
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

  test("is refused from a store to itself", async () => {
    const source = await createUsedStore(from);
    await expect(move(source, source)).rejects.toThrow(/is both the source and the target/);
  });
});
