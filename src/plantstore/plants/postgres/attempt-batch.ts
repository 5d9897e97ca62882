import type { PendingDelete } from "../delete-queue.ts";
import {
  type DeleteBatch,
  deletePlants,
  deleteUnlockedPlants,
  findDeleted,
  findPlants,
  lockPlants,
  type PlantFate,
  toDeleteBatch,
  waitForStandbysOf,
} from "./delete-batch.ts";
import { sqlStateOf, type Verdict, verdictOn } from "./fault-table.ts";
import type { Session } from "./session.ts";
import type { ToldByKey } from "./told-by-key.ts";

/** Options of {@link attemptBatch}. */
export interface AttemptMode {
  /** Whether an earlier attempt may have been committed, or may even be running still. */
  readonly mayBeDone: boolean;
  /** Whether plants that other transactions keep locked are left alone; otherwise they are waited for. */
  readonly skipsLocked: boolean;
  /**
   * Whether the idempotency keys are looked up before anything is deleted. Unless something has failed, it is enough to
   * look up the keys of deletions that have deleted no plant: the index lets no key be used twice.
   */
  readonly looksFirst: boolean;
  /** Answers the callers whose key has a record. */
  readonly told: ToldByKey;
}

/** The end of an attempt. */
export type Attempt =
  | { readonly kind: "done"; readonly fates: ReadonlyMap<bigint, PlantFate> }
  /** All plants are deleted: by far the most frequent end, for which no fates are collected. */
  | { readonly kind: "all-deleted" }
  /** Some callers were answered by their key before anything was deleted. The others are for the next attempt. */
  | { readonly kind: "told" }
  | {
      readonly kind: "failed";
      readonly verdict: Verdict;
      readonly fault: unknown;
      /** Whether this attempt, or an earlier one, may have been committed. */
      readonly mayBeDone: boolean;
    };

/**
 * Attempts to delete the plants of a batch, and answers the callers whose key has a record already. A plant without a
 * fate was not there, unless its caller was answered; no caller with a key is told so before its key was looked up.
 *
 * A batch that may be done is run again before the record is looked at. If the lost attempt is still running, this
 * waits for its locks; if it must not wait, the plants that the attempt holds are `locked`, and in doubt. For all
 * others the record is complete.
 */
export async function attemptBatch(
  session: Session,
  batch: DeleteBatch,
  pending: readonly PendingDelete[],
  mode: AttemptMode,
): Promise<Attempt> {
  let { mayBeDone } = mode;
  try {
    await session.connect();
  } catch (fault) {
    // Without a connection, nothing has been sent.
    return { kind: "failed", verdict: verdictOn(fault) === "give-up" ? "give-up" : "reconnect", fault, mayBeDone };
  }
  let hasBegun = false;
  try {
    if (mode.looksFirst && batch.keyed.length > 0 && (await mode.told.tell(session, batch.keyed))) {
      return { kind: "told" };
    }
    hasBegun = true;
    const fates = await (mode.skipsLocked ? skipLocked : deleteWaiting)(session, batch, mayBeDone);
    // From here on, the deletions are committed.
    mayBeDone = true;
    const undeleted = batch.keyed.filter((one) => !isDeletedFor(one, fates, batch));
    // Their keys may have been used before, or by another process while the statement waited for its lock.
    if (undeleted.length > 0) await mode.told.tellUndeleted(session, undeleted, batch.postponed);
    if (fates === undefined) return { kind: "all-deleted" };
    if (!mode.skipsLocked) await completeFates(session, batch, pending, { fates, told: mode.told });
    return { kind: "done", fates };
  } catch (fault) {
    const verdict = verdictOn(fault);
    mayBeDone ||= hasBegun && (verdict === "look" || isCutShort(session, fault));
    return { kind: "failed", verdict, fault, mayBeDone };
  }
}

/** Returns whether an attempt has deleted a plant for this caller; without fates it has deleted all plants. */
function isDeletedFor(
  one: PendingDelete,
  fates: ReadonlyMap<bigint, PlantFate> | undefined,
  { firstOf }: DeleteBatch,
): boolean {
  return firstOf.get(one.id) === one && (fates === undefined || fates.get(one.id) === "deleted");
}

/**
 * Returns whether a statement may have been committed although it was cancelled: on Citus by a worker, which does not
 * know that the coordinator has stopped waiting for it.
 */
function isCutShort({ shards }: Session, fault: unknown): boolean {
  return shards.areThere && sqlStateOf(fault) === "57014";
}

/** Deletes all plants of a batch, after waiting for their locks. Returns the deleted ones if there are others. */
async function deleteWaiting(
  session: Session,
  batch: DeleteBatch,
  mayBeDone: boolean,
): Promise<Map<bigint, PlantFate> | undefined> {
  let deleted = await deletePlants(session, batch);
  if (mayBeDone) deleted = await findDeleted(session, batch);
  return deleted.length === batch.firstOf.size ? undefined : new Map(deleted.map((id) => [id, "deleted"]));
}

async function skipLocked(session: Session, batch: DeleteBatch, mayBeDone: boolean): Promise<Map<bigint, PlantFate>> {
  const fates = await deleteUnlocked(session, batch);
  if (mayBeDone) for (const id of await findDeleted(session, batch)) fates.set(id, "deleted");
  return fates;
}

/**
 * Finds out what an earlier attempt did to plants that the server refuses to delete. Plants that still exist are
 * `kept`: the attempt has not deleted them, because this waits for its locks.
 */
export async function findRefused(session: Session, batch: DeleteBatch): Promise<ReadonlyMap<bigint, PlantFate>> {
  const there = await lockPlants(session, [...batch.firstOf.keys()]);
  // In this order: once the attempt has released its locks, its record is complete.
  const deleted = await findDeleted(session, batch);
  const fates = new Map<bigint, PlantFate>(there.map((id) => [id, "kept"]));
  for (const id of deleted) fates.set(id, "deleted");
  const missing = missingIn(batch, fates);
  await findPlants(session, missing);
  // The function that deletes was refused, so it has not waited for the standbys of the worker.
  if (session.shards.areThere && missing[0] !== undefined) await waitForStandbysOf(session, missing[0]);
  return fates;
}

/**
 * Finds out about the plants that were not deleted, for callers who were not told: a trigger may have kept one silently,
 * or the record of a key is gone since.
 */
async function completeFates(
  session: Session,
  batch: DeleteBatch,
  pending: readonly PendingDelete[],
  { fates, told }: { readonly fates: Map<bigint, PlantFate>; readonly told: ToldByKey },
): Promise<void> {
  const missing = pending.filter((one) => batch.firstOf.get(one.id) === one && !fates.has(one.id) && !told.has(one));
  if (missing.length === 0) return;
  const ids = missing.map(({ id }) => id);
  if ((await findPlants(session, ids)).length === 0) return;
  const others = await deleteUnlocked(session, toDeleteBatch(batch.token, missing));
  for (const [id, fate] of others) fates.set(id, fate);
}

/**
 * Deletes the plants that nobody keeps locked. A plant without a fate was not there, and will not be after a failover.
 */
async function deleteUnlocked(session: Session, batch: DeleteBatch): Promise<Map<bigint, PlantFate>> {
  const fates = await deleteUnlockedPlants(session, batch);
  const missing = missingIn(batch, fates);
  const hasCommitted = [...fates.values()].includes("deleted");
  if (missing.length > 0 && !hasCommitted) await findPlants(session, missing);
  return fates;
}

function missingIn({ firstOf }: DeleteBatch, fates: ReadonlyMap<bigint, PlantFate>): bigint[] {
  return [...firstOf.keys()].filter((id) => !fates.has(id));
}
