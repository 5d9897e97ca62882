import { afterAll, describe, expect, test } from "vitest";
import { openPlantStore } from "../../../../../src/stores/index.ts";
import { movePlants } from "../../../../../src/stores/records/move-plants.ts";
import { createTempFolder } from "@protoport/testing/process";
import { describeMoves } from "../../../../support/plants/describe-moves.ts";
import { deleteCall, startPostgresOfFile } from "../../../../support/plants/index.ts";
// oxfmt-ignore
import { batchSizesOf, createUsedStore, importInto, isUsable, kindsOf, move, plantsOf, recordsOf, reopen, withMovable
} from "../../../../support/plants/moved-stores.ts";

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

// Moves from SQLite to SQLite are tested in test/stores/records.
for (const { from, to } of directions) if (from !== sqlite || to !== sqlite) describeMoves(from, to, openPlantStore);

describe.each(directions)("a move $name", ({ from, to }) => {
  test("cannot be undone while it copies, and not once it has committed", async () => {
    const [source, target] = [await createUsedStore(from), await to.create()];
    await withMovable(source, target, async (one, another) => {
      const commit = async (): Promise<void> => {
        const isCopied = (await another.get("SELECT moved_from FROM plantstore_schema"))[0]?.startsWith("filling");
        if (isCopied === false) await expect(reopen(source, target)).rejects.toThrow(/lock/);
        await another.commit();
        if (isCopied === false) await expect(reopen(source, target)).rejects.toThrow(/lock|has finished/);
      };
      await movePlants(one, { ...another, commit });
    });
    expect([await isUsable(source), await isUsable(target)]).toEqual([false, true]);
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
    await expect(move(source, target)).resolves.toEqual({ plants: 10_000, records: 10_001, keys: 10_001 });
    expect(await plantsOf(target)).toEqual(ids.slice(10_001));
    expect(await recordsOf(target)).toEqual(await recordsOf(source));
    expect(await batchSizesOf(target)).toEqual(await batchSizesOf(source));
  });
});
