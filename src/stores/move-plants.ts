import type { DeletionRecord, LockedStore, StoreCounts } from "./locked-store.ts";
import { StoreOpenError } from "./store-open-error.ts";

/** The results of a move. */
export interface MoveCounts {
  readonly plants: {
    readonly added: number;
    /** Plants that the target already had. */
    readonly present: number;
    /** Plants that were deleted in the target after an earlier move. */
    readonly deleted: number;
    /** Plants of the target that were deleted in the source. */
    readonly removed: number;
  };
  readonly records: { readonly added: number; readonly present: number };
  /** Idempotency keys of the source. */
  readonly keys: number;
}

/** Called with the number of rows that were read so far. */
export type OnProgress = (what: "deletion records" | "plants", rows: number) => void;

/**
 * Copies the plants, deletion records and idempotency keys of a store into another one, in one transaction of the
 * target: after an error or a crash, the target is unchanged, and the move can be run again. It can also be run again
 * after it succeeded: then only what is new in the source is added, and plants that were deleted in the target since
 * stay deleted. Memory does not grow with the size of the stores.
 *
 * @throws StoreOpenError when a store fails, or the counts of the stores show that something was not moved
 */
export async function movePlants(
  source: LockedStore,
  target: LockedStore,
  onProgress: OnProgress = () => undefined,
): Promise<MoveCounts> {
  const before = await target.count();
  const { keys, addedKeys, removed, ...records } = await moveRecords({ source, target, before, onProgress });
  const plants = await moveIds({ source, target, before, onProgress });
  assertCounts(source, await source.count(), {
    plants: plants.added + plants.present + plants.deleted,
    records: records.added + records.present,
    keys,
  });
  assertCounts(target, await target.count(), {
    plants: before.plants + plants.added - removed,
    records: before.records + records.added,
    keys: before.keys + addedKeys,
  });
  await target.commit();
  return { plants: { ...plants, removed }, records, keys };
}

/** The stores of a move, and the counts of the target before it. */
interface Move {
  readonly source: LockedStore;
  readonly target: LockedStore;
  readonly before: StoreCounts;
  readonly onProgress: OnProgress;
}

interface MovedRecords {
  readonly added: number;
  readonly present: number;
  readonly keys: number;
  readonly addedKeys: number;
  readonly removed: number;
}

// Records are moved before plants, so that the records of the target include those of the source when plants are added.
async function moveRecords({ source, target, before, onProgress }: Move): Promise<MovedRecords> {
  const counts = { added: 0, present: 0, keys: 0, addedKeys: 0, removed: 0 };
  for await (const records of source.records()) {
    const present = before.records === 0 ? new Set() : await target.findRecords(records);
    const added = records.filter((_, i) => !present.has(i));
    assertAll(target, "deletion records", added.length, await target.insertRecords(added));
    if (before.plants > 0) counts.removed += await removeDeleted(source, target, added);
    counts.added += added.length;
    counts.present += present.size;
    counts.keys += countKeys(records);
    counts.addedKeys += countKeys(added);
    onProgress("deletion records", counts.added + counts.present);
  }
  return counts;
}

/** Removes plants from the target that were deleted in the source, for example after an earlier move. */
async function removeDeleted(
  source: LockedStore,
  target: LockedStore,
  records: readonly DeletionRecord[],
): Promise<number> {
  const ids = records.map(({ plantId }) => plantId);
  // A plant that was restored after its deletion stays.
  const existing = await source.findPlants(ids);
  return await target.deletePlants(ids.filter((id) => !existing.has(id)));
}

async function moveIds({ source, target, before, onProgress }: Move): Promise<Omit<MoveCounts["plants"], "removed">> {
  const counts = { added: 0, present: 0, deleted: 0 };
  for await (const ids of source.plants()) {
    const present = before.plants === 0 ? new Set() : await target.findPlants(ids);
    const missing = ids.filter((id) => !present.has(id));
    const deleted = before.records === 0 ? new Set() : await findDeletedInTarget(source, target, missing);
    const added = missing.filter((id) => !deleted.has(id));
    assertAll(target, "plants", added.length, await target.insertPlants(added));
    counts.added += added.length;
    counts.present += present.size;
    counts.deleted += deleted.size;
    onProgress("plants", counts.added + counts.present + counts.deleted);
  }
  return counts;
}

/**
 * Returns those of the ids of which the target has more records than the source. The target has all records of the
 * source, so the others are of deletions in the target.
 */
async function findDeletedInTarget(
  source: LockedStore,
  target: LockedStore,
  ids: readonly bigint[],
): Promise<ReadonlySet<bigint>> {
  const inTarget = await target.countRecords(ids);
  if (inTarget.size === 0) return new Set();
  const inSource = await source.countRecords([...inTarget.keys()]);
  return new Set([...inTarget.keys()].filter((id) => (inTarget.get(id) ?? 0) > (inSource.get(id) ?? 0)));
}

function countKeys(records: readonly DeletionRecord[]): number {
  return records.filter(({ idempotencyKey }) => idempotencyKey !== undefined).length;
}

function assertAll({ name }: LockedStore, what: string, given: number, inserted: number): void {
  if (inserted === given) return;
  throw new StoreOpenError(
    `${name} stored ${inserted} of ${given} ${what}, probably because of a trigger; nothing was moved`,
  );
}

function assertCounts({ name }: LockedStore, found: StoreCounts, expected: StoreCounts): void {
  if (describe(found) === describe(expected)) return;
  throw new StoreOpenError(`${name} has ${describe(found)}, expected ${describe(expected)}; nothing was moved`);
}

function describe({ plants, records, keys }: StoreCounts): string {
  return `${plants} plants, ${records} deletion records and ${keys} idempotency keys`;
}
