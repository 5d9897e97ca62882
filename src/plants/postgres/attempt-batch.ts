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

/** Options of {@link attemptBatch}. */
export interface AttemptMode {
  /** Whether an earlier attempt may have been committed, or may even be running still. */
  readonly mayBeDone: boolean;
  /** Whether plants that other transactions keep locked are left alone; otherwise they are waited for. */
  readonly skipsLocked: boolean;
}

/** The end of an attempt. */
export type Attempt =
  | { readonly kind: "done"; readonly fates: ReadonlyMap<bigint, PlantFate> }
  /** All plants are deleted: by far the most frequent end, for which no fates are collected. */
  | { readonly kind: "all-deleted" }
  | {
      readonly kind: "failed";
      readonly verdict: Verdict;
      readonly fault: unknown;
      /** Whether this attempt, or an earlier one, may have been committed. */
      readonly mayBeDone: boolean;
    };

/**
 * Attempts to delete the plants of a batch. A plant without a fate was not there.
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
  try {
    if (mode.skipsLocked) return { kind: "done", fates: await skipLocked(session, batch, mayBeDone) };
    let deleted = await deletePlants(session, batch);
    if (mayBeDone) deleted = await findDeleted(session, batch);
    if (deleted.length === batch.firstOf.size) return { kind: "all-deleted" };
    // From here on, the deletions are committed.
    mayBeDone = true;
    return { kind: "done", fates: await completeFates(session, batch, pending, deleted) };
  } catch (fault) {
    const verdict = verdictOn(fault);
    return { kind: "failed", verdict, fault, mayBeDone: mayBeDone || verdict === "look" || isCutShort(session, fault) };
  }
}

/**
 * Returns whether a statement may have been committed although it was cancelled: on Citus by a worker, which does not
 * know that the coordinator has stopped waiting for it.
 */
function isCutShort({ shards }: Session, fault: unknown): boolean {
  return shards.areThere && sqlStateOf(fault) === "57014";
}

async function skipLocked(
  session: Session,
  batch: DeleteBatch,
  mayBeDone: boolean,
): Promise<ReadonlyMap<bigint, PlantFate>> {
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

/** Finds out about the plants that were not deleted: a trigger may have kept one silently. */
async function completeFates(
  session: Session,
  batch: DeleteBatch,
  pending: readonly PendingDelete[],
  deleted: readonly bigint[],
): Promise<Map<bigint, PlantFate>> {
  const fates = new Map<bigint, PlantFate>(deleted.map((id) => [id, "deleted"]));
  const there = new Set(await findPlants(session, missingIn(batch, fates)));
  if (there.size === 0) return fates;
  const first = pending.filter((one) => there.has(one.id) && batch.firstOf.get(one.id) === one);
  const others = await deleteUnlocked(session, toDeleteBatch(batch.token, first));
  for (const [id, fate] of others) fates.set(id, fate);
  return fates;
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
