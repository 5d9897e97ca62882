import type { DeletionRecord, LockedStore, StoreCounts } from "../contract/locked-store.ts";
import { StoreOpenError } from "../contract/store-open-error.ts";

/** A move's results. */
export interface MoveCounts extends StoreCounts {
  /** Whether an earlier move had already copied everything, so that nothing was added. */
  readonly wasMoved: boolean;
}

/** Called with how many rows were read so far. */
export type OnProgress = (what: "deletion records" | "plants", rows: number) => void;

/**
 * Copies a store's plants, deletion records and idempotency keys into an empty one, in one transaction of the target.
 * After an error or a crash, the target is still empty, and the move can be run again. After a success, another run
 * compares the stores and adds nothing. Memory does not depend on the stores' size.
 *
 * A target with other plants or records is refused. A deletion is known only as long as its record is kept, so a plant
 * that only one store has may have been deleted in the other one.
 *
 * @throws StoreOpenError when a store fails, the target is neither empty nor a copy of the source, or the stores'
 * counts show that something was not moved
 */
export async function movePlants(
  source: LockedStore,
  target: LockedStore,
  onProgress: OnProgress = () => undefined,
): Promise<MoveCounts> {
  const [expected, before] = [await source.count(), await target.count()];
  const wasMoved = before.plants > 0 || before.records > 0;
  if (wasMoved && !isEqual(before, expected)) throw isOther(target, before);
  const moved = await readAll(source, onProgress, wasMoved ? compareWith(target, before) : addTo(target));
  assertCounts(source, expected, moved);
  assertCounts(target, await target.count(), moved);
  await target.commit();
  return { ...moved, wasMoved };
}

/** What is done with each chunk from the source. */
interface Steps {
  readonly onRecords: (records: readonly DeletionRecord[]) => Promise<void>;
  readonly onPlants: (ids: readonly bigint[]) => Promise<void>;
}

/** Reads a store, and returns how many rows were read. */
async function readAll(
  source: LockedStore,
  onProgress: OnProgress,
  { onRecords, onPlants }: Steps,
): Promise<StoreCounts> {
  const counts = { plants: 0, records: 0, keys: 0 };
  for await (const records of source.records()) {
    await onRecords(records);
    counts.records += records.length;
    counts.keys += records.filter(({ idempotencyKey }) => idempotencyKey !== undefined).length;
    onProgress("deletion records", counts.records);
  }
  for await (const ids of source.plants()) {
    await onPlants(ids);
    counts.plants += ids.length;
    onProgress("plants", counts.plants);
  }
  return counts;
}

function addTo(target: LockedStore): Steps {
  return {
    onRecords: async (records) =>
      assertAll(target, "deletion records", records.length, await target.insertRecords(records)),
    onPlants: async (ids) => assertAll(target, "plants", ids.length, await target.insertPlants(ids)),
  };
}

function assertAll({ name }: LockedStore, what: string, given: number, inserted: number): void {
  if (inserted === given) return;
  throw new StoreOpenError(
    `${name} stored ${inserted} of ${given} ${what}, probably because of a trigger; nothing was moved`,
  );
}

function compareWith(target: LockedStore, counts: StoreCounts): Steps {
  const assertFound = (given: number, found: number): void => {
    if (found !== given) throw isOther(target, counts);
  };
  return {
    onRecords: async (records) => assertFound(records.length, await target.countRecords(records)),
    onPlants: async (ids) => assertFound(ids.length, await target.countPlants(ids)),
  };
}

function isOther({ name }: LockedStore, counts: StoreCounts): StoreOpenError {
  return new StoreOpenError(
    `${name} has ${describe(counts)}, which are not those of the source: move to a new store; nothing was moved`,
  );
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
