import { describe, expect, test } from "vitest";
import { checkPlantStore, movePlants, reopenPlants } from "../../../src/stores/index.ts";
import type { MovableStore } from "../../../src/stores/contract/movable-store.ts";
// oxfmt-ignore
import { importInto, interruptMove, key, type Kind, move, plantsOf, recordsOf, reopen, storesOpenedBy, withMovable
} from "./moved-stores.ts";

const named = (store: MovableStore): MovableStore => ({ ...store, name: "db:5432/plants" });

/** Describes moves between two kinds of stores. @param open - opens a store as a server does */
export function describeMoves(from: Kind, to: Kind, open: Parameters<typeof storesOpenedBy>[0]): void {
  const { createUsedStore, deleteFrom, isUsable } = storesOpenedBy(open);

  describe(`a move from ${from.kind} to ${to.kind}`, () => {
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
      const want = [true, false, true, false];
      await expect(deleteFrom(target, [2n, key], [2n], [3n, { subject: "bob" }], [3n])).resolves.toEqual(want);
      await expect(deleteFrom(target, [1n, key])).rejects.toThrow(/key/);
    });

    test("leaves a source that commands can read and no server or import can use", async () => {
      const [source, target] = [await createUsedStore(from), await to.create()];
      await move(source, target);
      const advice =
        /: it was moved to \S+ at 2\S+: use that store, or undo an interrupted move with .*--reopen FROM TO/;
      await expect(open(source)).rejects.toThrow(advice);
      await expect(importInto(source, [9n])).rejects.toThrow(advice);
      await expect(checkPlantStore(source)).rejects.toThrow(advice);
      expect([await isUsable(source), await isUsable(target)]).toEqual([false, true]);
    });

    test("changes nothing when repeated after the target's server has deleted plants", async () => {
      const [source, target] = [await createUsedStore(from), await to.create()];
      await move(source, target);
      await deleteFrom(target, [1n]);
      const before = { plants: await plantsOf(target), records: await recordsOf(target) };
      await expect(move(source, target)).resolves.toBeUndefined();
      expect({ plants: await plantsOf(target), records: await recordsOf(target) }).toEqual(before);
      await expect(reopen(source, target)).rejects.toThrow(/: the move to it has finished: use this store$/);
      expect([await isUsable(source), await isUsable(target)]).toEqual([false, true]);
    });

    test("continues to a third store", async () => {
      const [source, second, third] = [await createUsedStore(from), await to.create(), await from.create()];
      const before = await plantsOf(source);
      await move(source, second);
      await move(second, third);
      await expect(move(source, second)).rejects.toThrow(/: it was moved to /);
      await expect(move(third, source)).rejects.toThrow(/: it was moved to /);
      await expect(reopen(source, second)).rejects.toThrow(/: the move to it has finished/);
      expect(await plantsOf(third)).toEqual(before);
      expect(await Promise.all([source, second, third].map(isUsable))).toEqual([false, false, true]);
    });

    test.each([
      ["has a plant", "INSERT INTO plants VALUES (7)", "1 plants, 0 deletion records", undefined],
      ["has deleted a plant", "INSERT INTO plants VALUES (7)", "0 plants, 1 deletion records", true],
    ])("is refused if the target %s", async (_name, sql, found, deletes) => {
      const [source, target] = [await createUsedStore(from), await to.create()];
      await to.run(target, sql);
      if (deletes === true) await deleteFrom(target, [7n]);
      await expect(move(source, target)).rejects.toThrow(
        `: it has ${found} and 0 idempotency keys: move to a new store`,
      );
      expect([await isUsable(source), await isUsable(target)]).toEqual([true, true]);
    });

    test("that is interrupted leaves no usable store, and the same move finishes it", async () => {
      const [source, target] = [await createUsedStore(from), await to.create()];
      const before = { plants: await plantsOf(source), records: await recordsOf(source) };
      await interruptMove(source, target);
      await expect(move(target, target)).rejects.toThrow(/: it is both the source and the target$/);
      expect([await isUsable(source), await isUsable(target)]).toEqual([false, false]);
      const advice =
        /: it is being filled by a move from \S+ at 2\S+: finish it with the same "plantstore move", or undo/;
      await expect(open(target)).rejects.toThrow(advice);
      await expect(importInto(target, [9n])).rejects.toThrow(advice);
      await expect(checkPlantStore(target)).rejects.toThrow(advice);
      await expect(move(source, target)).resolves.toEqual({ plants: 4, records: 3, keys: 1 });
      expect({ plants: await plantsOf(target), records: await recordsOf(target) }).toEqual(before);
      expect([await isUsable(source), await isUsable(target)]).toEqual([false, true]);
    });

    test("that is interrupted can be undone with the right target only", async () => {
      const [source, target, other] = [await createUsedStore(from), await to.create(), await to.create()];
      const before = { plants: await plantsOf(source), records: await recordsOf(source) };
      await interruptMove(source, target);
      await expect(reopen(source, other)).rejects.toThrow(/: it is not the target of the interrupted move/);
      await expect(reopen(target, source)).rejects.toThrow(/: no interrupted move to it is known/);
      await expect(move(source, other)).rejects.toThrow(/: it was moved to /);
      expect(await Promise.all([source, target, other].map(isUsable))).toEqual([false, false, true]);
      await reopen(source, target);
      expect(await Promise.all([source, target, other].map(isUsable))).toEqual([true, true, true]);
      expect({ plants: await plantsOf(source), records: await recordsOf(source) }).toEqual(before);
      await expect(reopen(source, target)).rejects.toThrow(/: no interrupted move to it is known; nothing was changed/);
      await expect(move(source, target)).resolves.toEqual({ plants: 4, records: 3, keys: 1 });
    });

    test("whose undoing is interrupted can still be undone after another store filled the target", async () => {
      const [source, target, other] = [await createUsedStore(from), await to.create(), await createUsedStore(from)];
      await interruptMove(source, target);
      const failing = withMovable(source, target, (one, another) => {
        let begun = 0;
        const begin: MovableStore["begin"] = (isSnapshot) =>
          ++begun > 1 ? Promise.reject(new Error("interrupted")) : one.begin(isSnapshot);
        return reopenPlants({ ...one, begin }, another);
      });
      await expect(failing).rejects.toThrow("interrupted");
      expect([await isUsable(source), await isUsable(target)]).toEqual([false, true]);
      await move(other, target);
      await reopen(source, target);
      expect(await Promise.all([source, target, other].map(isUsable))).toEqual([true, true, false]);
    });

    test("to one of two targets with the same name uses only this target", async () => {
      const [source, target, second] = [await createUsedStore(from), await to.create(), await to.create()];
      const interrupted = withMovable(source, target, (one, another) =>
        movePlants(one, { ...named(another), insertRecords: () => Promise.reject(new Error("interrupted")) }),
      );
      await expect(interrupted).rejects.toThrow(/interrupted/);
      const toSecond = withMovable(source, second, (one, another) => movePlants(one, named(another)));
      await expect(toSecond).rejects.toThrow(/: it was moved to db:5432\/plants at /);
      await expect(reopen(source, second)).rejects.toThrow(/not the target/);
      expect(await Promise.all([source, target, second].map(isUsable))).toEqual([false, false, true]);
      await expect(move(source, target)).resolves.toMatchObject({ plants: 4 });
    });

    test("from one of two sources with the same name fills the target once", async () => {
      const [source, second, target] = [await createUsedStore(from), await createUsedStore(from), await to.create()];
      await deleteFrom(second, [1n]);
      await interruptMove(source, target);
      await expect(move(second, target)).resolves.toMatchObject({ plants: 3 });
      await expect(move(source, target)).rejects.toThrow(/: it was filled by another move/);
      await reopen(source, target);
      expect(await plantsOf(source)).toHaveLength(4);
      expect(await Promise.all([source, second, target].map(isUsable))).toEqual([true, false, true]);
    });

    test("that is undone before the source was marked stops, and is undone again", async () => {
      const [source, target] = [await createUsedStore(from), await to.create()];
      const moving = withMovable(source, target, (one, another) => {
        let begun = 0;
        const begin: MovableStore["begin"] = async (isSnapshot) => {
          if (++begun === 2) await reopen(source, target);
          await one.begin(isSnapshot);
        };
        return movePlants({ ...one, begin }, another);
      });
      await expect(moving).rejects.toThrow(/: another command has changed its mark/);
      expect([await isUsable(source), await isUsable(target)]).toEqual([false, true]);
      await reopen(source, target);
      expect([await isUsable(source), await isUsable(target)]).toEqual([true, true]);
    });

    test("of an empty store to itself is refused, and the store stays usable", async () => {
      const store = await from.create();
      await expect(move(store, store)).rejects.toThrow(/: it is both the source and the target$/);
      expect(await isUsable(store)).toBe(true);
    });

    test("of a used store to itself is refused", async () => {
      const source = await createUsedStore(from);
      await expect(move(source, source)).rejects.toThrow(/: it has 4 plants, .*nothing was moved$/);
      expect(await isUsable(source)).toBe(true);
    });
  });
}
