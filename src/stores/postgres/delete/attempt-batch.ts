import type { PendingDelete } from "../../delete-queue.ts";
import type { StoreSchema } from "../schema/store-schema.ts";
import type { Session } from "../server/session.ts";
import { sqlStateOf } from "../server/sql-state.ts";
import type { EndedDeletes } from "./ended-deletes.ts";
import { type PreparedBatch, prepareBatch } from "./prepared-batch.ts";
import { type Verdict, verdictOn } from "./fault-table.ts";
import { toId, toIds } from "./single-server.ts";
import type { Placement, PlantFate } from "./placement.ts";

/** Options of {@link attemptBatch}. */
export interface AttemptMode {
  readonly placement: Placement;
  /** The token by which records of earlier attempts are found. */
  readonly token: string;
  readonly ended: EndedDeletes;
  /**
   * Whether idempotency keys are looked up before anything is deleted, and plants that other transactions have locked
   * are skipped. Otherwise the statement waits for locks, and only the keys of deletions that deleted no plant are
   * looked up, afterwards.
   */
  readonly isCareful: boolean;
  /** Whether an earlier attempt may have been committed, or may still be committed. Requires `isCareful`. */
  readonly isInDoubt: boolean;
}

/** The result of an attempt. */
export type Attempt =
  | {
      readonly kind: "succeeded";
      readonly batch: PreparedBatch;
      /** The fates of the plants of the statement. A plant without a fate did not exist, unless it is `remaining`. */
      readonly fates: ReadonlyMap<bigint, PlantFate>;
      /** Which of the plants of postponed deletions exist. */
      readonly existing: ReadonlySet<bigint>;
      /** The plants that exist although the statement was to delete them: they need a careful attempt. */
      readonly remaining: ReadonlySet<bigint>;
    }
  | {
      readonly kind: "failed";
      readonly verdict: Verdict;
      readonly fault: unknown;
      /** Whether this attempt, or an earlier one, may have been committed. */
      readonly isInDoubt: boolean;
    };

/**
 * Attempts to delete the plants of a batch, and settles the deletions whose key already has a record. Before a deletion
 * with a key is reported as not found, its key is looked up.
 *
 * A batch in doubt is run again before its records are read. If the earlier attempt is still running, the plants
 * that it has locked are `locked`, and in doubt. For all other plants the records are then complete.
 */
export async function attemptBatch(
  session: Session,
  pending: readonly PendingDelete[],
  mode: AttemptMode,
): Promise<Attempt> {
  const { placement, token, ended, isCareful } = mode;
  let { isInDoubt } = mode;
  try {
    await session.connect();
  } catch (fault) {
    // Without a connection, nothing has been sent.
    return { kind: "failed", verdict: verdictOn(fault) === "fail" ? "fail" : "reconnect", fault, isInDoubt };
  }
  let hasBegun = false;
  try {
    if (isCareful) await ended.settleByKey(session, placement, pending.filter(hasKey));
    const batch = prepareBatch(token, isCareful ? ended.openOf(pending) : pending);
    if (batch.firstOf.size === 0)
      return { kind: "succeeded", batch, fates: new Map(), existing: new Set(), remaining: new Set() };
    hasBegun = true;
    const fates = isCareful
      ? await deleteUnlocked(session, batch, mode)
      : fatesOf(await placement.deletePlants(session, batch), "deleted");
    // The deletions are committed. If a lookup below fails, the next attempt finds their records.
    isInDoubt = true;
    const missing = isCareful ? [] : missingIn(batch, fates);
    const ids = [...missing, ...[...batch.postponed].map(({ id }) => id)];
    // Plants first, then keys: if another process has deleted a plant for the same key, the record of the key exists
    // once the plant no longer does.
    const existing = new Set(ids.length === 0 ? [] : await placement.findPlants(session, ids));
    const isDeleted = (one: PendingDelete): boolean =>
      batch.firstOf.get(one.id) === one && fates.get(one.id) === "deleted";
    const notDeleted = batch.keyed.filter((one) => !isDeleted(one));
    await ended.settleByKey(session, placement, notDeleted);
    // A trigger may have kept a plant, or another process may have used its key while the statement waited for a lock.
    const isKept = (id: bigint): boolean => {
      const first = batch.firstOf.get(id);
      return existing.has(id) && first !== undefined && !ended.has(first);
    };
    return { kind: "succeeded", batch, fates, existing, remaining: new Set(missing.filter(isKept)) };
  } catch (fault) {
    const verdict = verdictOn(fault);
    // A worker may still commit after its coordinator was cancelled.
    const wasCancelled = placement.isDistributed && sqlStateOf(fault) === "57014";
    isInDoubt ||= hasBegun && (verdict === "unknown" || wasCancelled);
    return { kind: "failed", verdict, fault, isInDoubt };
  }
}

/** Returns whether a deletion has an idempotency key. */
export function hasKey({ call }: PendingDelete): boolean {
  return call.idempotencyKey !== undefined;
}

/**
 * Deletes the plants that are not locked. A plant without a fate does not exist, even after a failover. Plants that an
 * earlier attempt has deleted count as deleted.
 */
async function deleteUnlocked(
  session: Session,
  batch: PreparedBatch,
  { placement, isInDoubt }: AttemptMode,
): Promise<Map<bigint, PlantFate>> {
  const fates = await placement.deleteUnlockedPlants(session, batch);
  if (isInDoubt) for (const id of await findRecorded(session, placement, batch)) fates.set(id, "deleted");
  const missing = missingIn(batch, fates);
  // If a plant was deleted or its record was found, a commit has already waited for the standbys.
  const hasCommitted = [...fates.values()].includes("deleted");
  if (missing.length > 0 && !hasCommitted) await placement.findPlants(session, missing);
  return fates;
}

/**
 * Determines what an earlier attempt did to the only plant of a batch, which the server now refuses to delete. If the
 * plant still exists, it is `kept`: the attempt did not delete it, because this function waits for the attempt's lock.
 */
export async function findRefused(
  session: Session,
  placement: Placement,
  batch: PreparedBatch,
): Promise<PlantFate | undefined> {
  const existing = await placement.runLookup(session, (condition) => lockSql(placement.schema, condition), [batch.ids]);
  // The record is read after the wait for the lock: once the attempt has released the lock, its record is complete.
  const deleted = await findRecorded(session, placement, batch);
  if (deleted.length > 0) return "deleted";
  if (existing.length > 0) return "kept";
  await placement.waitForStandbys(session, [...batch.firstOf.keys()]);
  return undefined;
}

const lockSql = ({ plants }: StoreSchema, condition: string): string =>
  `SELECT id FROM ${plants} WHERE id = ANY($1::bigint[]) AND ${condition} FOR UPDATE`;

// An UPDATE that changes nothing, instead of a SELECT: its commit waits for the disk and for synchronous standbys, so
// the records that it finds are durable even if the first attempt did not wait. If a trigger suppresses the update, the
// statement fails, because the record exists and the plant must not be reported as not found.
const findRecordedSql = ({ deletions }: StoreSchema, condition: string): string => `
  WITH looked AS (
    UPDATE ${deletions} SET batch = batch
    WHERE plant_id = ANY($1::bigint[]) AND batch = $2::pg_catalog.uuid AND ${condition} RETURNING seq)
  SELECT CASE WHEN looked.seq IS NULL THEN ('a trigger prevents the update of the record of plant ' || plant_id)::bigint
    ELSE plant_id END AS plant_id, idempotency_key
  FROM ${deletions} LEFT JOIN looked USING (seq)
  WHERE plant_id = ANY($1::bigint[]) AND batch = $2::pg_catalog.uuid`;

/**
 * Returns the plants that any attempt at a batch has deleted, without those deleted for the key of a call that was
 * cancelled meanwhile. The result is final only for plants that are not locked, or whose lock the statement has waited
 * for; for others, an attempt may still commit later.
 */
async function findRecorded(
  session: Session,
  placement: Placement,
  { token, ids, firstOf }: PreparedBatch,
): Promise<bigint[]> {
  const toSql = (condition: string): string => findRecordedSql(placement.schema, condition);
  const rows = await placement.runLookup(session, toSql, [ids, token]);
  return toIds(rows.filter(([id, key]) => (firstOf.get(toId(id))?.call.idempotencyKey ?? null) === key));
}

function fatesOf(ids: readonly bigint[], fate: PlantFate): Map<bigint, PlantFate> {
  return new Map(ids.map((id) => [id, fate]));
}

function missingIn({ firstOf }: PreparedBatch, fates: ReadonlyMap<bigint, PlantFate>): bigint[] {
  return [...firstOf.keys()].filter((id) => !fates.has(id));
}
