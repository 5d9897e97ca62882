import type { PendingDelete } from "../../delete-queue.ts";
import type { StoreSchema } from "../schema/store-schema.ts";
import type { Session } from "../server/session.ts";
import { sqlStateOf } from "../server/sql-state.ts";
import type { AnsweredByKey } from "./answered-by-key.ts";
import { type DeleteBatch, toDeleteBatch } from "./delete-batch.ts";
import { type Verdict, verdictOn } from "./fault-table.ts";
import { toId, toIds } from "./one-server.ts";
import type { Placement, PlantFate } from "./placement.ts";

/** Options of {@link attemptBatch}. */
export interface AttemptMode {
  readonly placement: Placement;
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
  readonly answered: AnsweredByKey;
}

/** The end of an attempt. */
export type Attempt =
  | {
      readonly kind: "done";
      /** The fates of the plants of the statement. One without was not there, unless its caller was answered. */
      readonly fates: ReadonlyMap<bigint, PlantFate>;
      /** Which of the plants of postponed deletions are there. */
      readonly there: ReadonlySet<bigint>;
    }
  /** Some callers were answered by their key before anything was deleted. The others are for the next attempt. */
  | { readonly kind: "answered" }
  | {
      readonly kind: "failed";
      readonly verdict: Verdict;
      readonly fault: unknown;
      /** Whether this attempt, or an earlier one, may have been committed. */
      readonly mayBeDone: boolean;
    };

/**
 * Attempts to delete the plants of a batch, and answers the callers whose key has a record already. No caller with a
 * key is told that a plant was not there before its key was looked up.
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
  const { placement, answered } = mode;
  let { mayBeDone } = mode;
  try {
    await session.connect();
  } catch (fault) {
    // Without a connection, nothing has been sent.
    return { kind: "failed", verdict: verdictOn(fault) === "give-up" ? "give-up" : "reconnect", fault, mayBeDone };
  }
  let hasBegun = false;
  try {
    if (mode.looksFirst && (await answered.answer(session, placement, batch.keyed))) return { kind: "answered" };
    hasBegun = true;
    const fates = await deleteBatch(session, batch, mode);
    // From here on, the deletions are committed.
    mayBeDone = true;
    const there = await completeFates(session, batch, pending, mode, fates);
    return { kind: "done", fates, there };
  } catch (fault) {
    const verdict = verdictOn(fault);
    // A worker does not know that its coordinator has stopped waiting for it.
    const isCutShort = placement.isSpread && sqlStateOf(fault) === "57014";
    mayBeDone ||= hasBegun && (verdict === "look" || isCutShort);
    return { kind: "failed", verdict, fault, mayBeDone };
  }
}

async function deleteBatch(
  session: Session,
  batch: DeleteBatch,
  { placement, skipsLocked, mayBeDone }: AttemptMode,
): Promise<Map<bigint, PlantFate>> {
  const fates = skipsLocked
    ? await deleteUnlocked(session, placement, batch)
    : fatesOf(await placement.deletePlants(session, batch), "deleted");
  if (!mayBeDone) return fates;
  // What the statement has just deleted has a record, too.
  return new Map([...fates, ...fatesOf(await findRecorded(session, placement, batch), "deleted")]);
}

/**
 * Finds out about the deletions that have not deleted their plant. Their keys may have been used before, or by another
 * process while the statement waited for its lock; a trigger may have kept a plant silently. Returns which of the
 * plants that it has looked for are there.
 */
async function completeFates(
  session: Session,
  batch: DeleteBatch,
  pending: readonly PendingDelete[],
  { placement, skipsLocked, answered }: AttemptMode,
  fates: Map<bigint, PlantFate>,
): Promise<ReadonlySet<bigint>> {
  const isFirst = (one: PendingDelete): boolean => batch.firstOf.get(one.id) === one;
  const missing = skipsLocked ? [] : pending.filter((one) => isFirst(one) && !fates.has(one.id));
  const asked = [...missing, ...batch.postponed].map(({ id }) => id);
  // In this order: if another process has deleted a plant for the same key, its record is there once the plant is not.
  const there = new Set(asked.length === 0 ? [] : await placement.findPlants(session, asked));
  const undeleted = (): readonly PendingDelete[] =>
    batch.keyed.filter((one) => !answered.has(one) && (!isFirst(one) || fates.get(one.id) !== "deleted"));
  await answered.answer(session, placement, undeleted());
  const kept = missing.filter((one) => there.has(one.id) && !answered.has(one));
  if (kept.length === 0) return there;
  const others = await deleteUnlocked(session, placement, toDeleteBatch(batch.token, kept));
  for (const [id, fate] of others) fates.set(id, fate);
  // As above: meanwhile this statement, or another process, may have made the record of a key.
  await answered.answer(session, placement, undeleted());
  return there;
}

/**
 * Deletes the plants that nobody keeps locked. A plant without a fate was not there, and will not be after a failover.
 */
async function deleteUnlocked(
  session: Session,
  placement: Placement,
  batch: DeleteBatch,
): Promise<Map<bigint, PlantFate>> {
  const fates = await placement.deleteUnlockedPlants(session, batch);
  const missing = missingIn(batch, fates);
  // A commit has waited for the standbys.
  const hasCommitted = [...fates.values()].includes("deleted");
  if (missing.length > 0 && !hasCommitted) await placement.findPlants(session, missing);
  return fates;
}

/**
 * Finds out what an earlier attempt did to a plant that the server refuses to delete, the only one of its batch. A plant
 * that still exists is `kept`: the attempt has not deleted it, because this waits for its lock.
 */
export async function findRefused(
  session: Session,
  placement: Placement,
  batch: DeleteBatch,
): Promise<PlantFate | undefined> {
  const there = await placement.lookUp(session, (condition) => lockSql(placement.schema, condition), [batch.ids]);
  // In this order: once the attempt has released its lock, its record is complete.
  const deleted = await findRecorded(session, placement, batch);
  if (deleted.length > 0) return "deleted";
  if (there.length > 0) return "kept";
  await placement.waitForStandbys(session, [...batch.firstOf.keys()]);
  return undefined;
}

const lockSql = ({ plants }: StoreSchema, condition: string): string =>
  `SELECT id FROM ${plants} WHERE id = ANY($1::bigint[]) AND ${condition} FOR UPDATE`;

// An UPDATE that changes nothing instead of a SELECT: its commit waits for the disk and for synchronous standbys, so
// the records that it finds are durable even if the first attempt could not wait for that. If a trigger suppresses the
// update, the statement fails: the record exists, so no caller may be told that the plant did not.
const findRecordedSql = ({ deletions }: StoreSchema, condition: string): string => `
  WITH looked AS (
    UPDATE ${deletions} SET batch = batch
    WHERE plant_id = ANY($1::bigint[]) AND batch = $2::pg_catalog.uuid AND ${condition} RETURNING seq)
  SELECT CASE WHEN looked.seq IS NULL THEN ('a trigger prevents the update of the record of plant ' || plant_id)::bigint
    ELSE plant_id END AS plant_id, idempotency_key
  FROM ${deletions} LEFT JOIN looked USING (seq)
  WHERE plant_id = ANY($1::bigint[]) AND batch = $2::pg_catalog.uuid`;

/**
 * Returns the plants that any attempt at a batch has deleted, except those deleted for another key, whose caller has
 * given up. The answer is final only for plants that are not locked, or whose lock was waited for: otherwise, a later
 * commit could be missed.
 */
async function findRecorded(
  session: Session,
  placement: Placement,
  { token, ids, firstOf }: DeleteBatch,
): Promise<bigint[]> {
  const toSql = (condition: string): string => findRecordedSql(placement.schema, condition);
  const rows = await placement.lookUp(session, toSql, [ids, token]);
  return toIds(rows.filter(([id, key]) => (firstOf.get(toId(id))?.call.idempotencyKey ?? null) === key));
}

function fatesOf(ids: readonly bigint[], fate: PlantFate): Map<bigint, PlantFate> {
  return new Map(ids.map((id) => [id, fate]));
}

function missingIn({ firstOf }: DeleteBatch, fates: ReadonlyMap<bigint, PlantFate>): bigint[] {
  return [...firstOf.keys()].filter((id) => !fates.has(id));
}
