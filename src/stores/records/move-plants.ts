import type { LockedStore, StoreCounts } from "../contract/locked-store.ts";
import { StoreOpenError } from "../contract/store-open-error.ts";

/** Called with the number of rows that were read so far. */
export type OnProgress = (what: "deletion records" | "plants", rows: number) => void;

/**
 * Copies plants, deletion records and idempotency keys into an empty store, in one transaction of the target. Returns
 * the number of copied rows. After an error or a crash, the target is still empty. Memory use is constant.
 *
 * The target must be empty, because a used store may have deleted a plant and dropped the plant's record.
 *
 * @throws StoreOpenError when a store fails, the target is not empty, or the stores' counts differ after the copy
 */
export async function movePlants(
  source: LockedStore,
  target: LockedStore,
  onProgress: OnProgress = () => undefined,
): Promise<StoreCounts> {
  const [expected, before] = [await source.count(), await target.count()];
  if (before.plants > 0 || before.records > 0) throw notEmptyError(target, before, isEqual(before, expected));
  const moved = await copy(source, target, onProgress);
  assertCounts(source, expected, moved);
  assertCounts(target, await target.count(), moved);
  await target.commit();
  return moved;
}

async function copy(source: LockedStore, target: LockedStore, onProgress: OnProgress): Promise<StoreCounts> {
  const counts = { plants: 0, records: 0, keys: 0 };
  for await (const records of source.records()) {
    assertAllInserted(target, "deletion records", records.length, await target.insertRecords(records));
    counts.records += records.length;
    counts.keys += records.filter(({ idempotencyKey }) => idempotencyKey !== undefined).length;
    onProgress("deletion records", counts.records);
  }
  for await (const ids of source.plants()) {
    assertAllInserted(target, "plants", ids.length, await target.insertPlants(ids));
    counts.plants += ids.length;
    onProgress("plants", counts.plants);
  }
  return counts;
}

function assertAllInserted({ name }: LockedStore, what: string, given: number, inserted: number): void {
  if (inserted === given) return;
  throw new StoreOpenError(
    `${name} stored ${inserted} of ${given} ${what}, probably because of a trigger; nothing was moved`,
  );
}

function notEmptyError({ name }: LockedStore, counts: StoreCounts, hasAsMany: boolean): StoreOpenError {
  const reason = hasAsMany
    ? 'as many as the source; an earlier move may have succeeded: compare "export" and "deletions" of both'
    : "which are not those of the source: move to a new store";
  return new StoreOpenError(`${name} has ${describe(counts)}, ${reason}; nothing was moved`);
}

function assertCounts({ name }: LockedStore, found: StoreCounts, expected: StoreCounts): void {
  if (isEqual(found, expected)) return;
  throw new StoreOpenError(`${name} has ${describe(found)}, expected ${describe(expected)}; nothing was moved`);
}

function isEqual(one: StoreCounts, other: StoreCounts): boolean {
  return describe(one) === describe(other);
}

function describe({ plants, records, keys }: StoreCounts): string {
  return `${plants} plants, ${records} deletion records and ${keys} idempotency keys`;
}
