import { type Deletion, endings, openOf, TransitionError } from "./deletion.ts";
import type { StoreSchema } from "../schema/store-schema.ts";
import type { Session } from "../server/session.ts";
import { type PreparedBatch, prepareBatch } from "./prepared-batch.ts";
import { type Verdict, verdictOn } from "./fault-table.ts";
import { toId, toIds } from "./single-server.ts";
import type { Placement, PlantOutcome } from "./placement.ts";

/** Options for {@link attemptBatch}. */
export interface AttemptMode {
  readonly placement: Placement;
  /** Identifies the records of all attempts. */
  readonly token: string;
  /**
   * Whether to look up all idempotency keys before the statement, and to skip locked plants. Otherwise, the attempt
   * waits for locks, and then looks up only the keys of deletions that deleted no plant.
   */
  readonly isCareful: boolean;
  /**
   * Whether an earlier attempt may be committed, now or later. If so, all deletions are in doubt. Requires
   * `isCareful`.
   */
  readonly isInDoubt: boolean;
}

/** A failed attempt. */
export interface Failed {
  readonly verdict: Verdict;
  readonly fault: unknown;
  /** Whether this attempt or an earlier attempt may have been committed. */
  readonly isInDoubt: boolean;
}

interface Succeeded {
  readonly batch: PreparedBatch;
  /** The outcomes for the statement's plants. A plant without an outcome did not exist or is in {@link remaining}. */
  readonly outcomes: ReadonlyMap<bigint, PlantOutcome>;
  /** The plants that still exist, among plants without an outcome and plants of postponed deletions. */
  readonly existing: ReadonlySet<bigint>;
  /** The plants that still exist after the statement. Each remaining plant needs a careful attempt. */
  readonly remaining: ReadonlySet<bigint>;
}

/**
 * Attempts to delete a batch's plants, and ends or defers the batch's deletions. A deletion stays open if its plant
 * needs a careful attempt. Before a deletion with a key is reported as not found, the key is looked up.
 *
 * A batch in doubt is run again before its records are read. If an earlier attempt is still running, the plants that
 * the attempt has locked are `deferred`, in doubt. The records of all other plants are final.
 */
export async function attemptBatch(
  session: Session,
  open: readonly Deletion[],
  mode: AttemptMode,
): Promise<Failed | undefined> {
  const { placement, token, isCareful } = mode;
  let { isInDoubt } = mode;
  try {
    await session.connect();
  } catch (fault) {
    // Without a connection, no statement has been sent.
    return { verdict: verdictOn(fault) === "fail" ? "fail" : "reconnect", fault, isInDoubt };
  }
  let hasBegun = false;
  try {
    if (isCareful) await endByKey(session, placement, open.filter(hasKey));
    const batch = prepareBatch(token, isCareful ? openOf(open) : open);
    if (batch.firstDeletions.size === 0) return undefined;
    // Called after the lookup, because the next call needs the token if a plant's first call is cancelled meanwhile.
    if (isInDoubt) for (const one of batch.firstDeletions.values()) one.doubt(token);
    hasBegun = true;
    const outcomes: ReadonlyMap<bigint, PlantOutcome> = isCareful
      ? await deleteUnlocked(session, batch, mode)
      : new Map((await placement.deletePlants(session, batch)).map((id) => [id, "deleted"]));
    // The deletions are committed. If a lookup below fails, the next attempt finds the deletion records.
    isInDoubt = true;
    const missing = isCareful ? [] : missingIn(batch, outcomes);
    const ids = [...missing, ...[...batch.postponed].map(({ id }) => id)];
    // Looks up plants before keys. If another call with a key deleted its plant, the key's record is then visible.
    const existing = new Set(ids.length === 0 ? [] : await placement.findPlants(session, ids));
    const isDeleted = (one: Deletion): boolean =>
      batch.firstDeletions.get(one.id) === one && outcomes.get(one.id) === "deleted";
    const notDeleted = batch.keyed.filter((one) => !isDeleted(one));
    await endByKey(session, placement, notDeleted);
    // A trigger may have kept a plant. Another process may have used the key while the statement waited for a lock.
    const isKept = (id: bigint): boolean => {
      const first = batch.firstDeletions.get(id);
      return existing.has(id) && first?.isOpen === true;
    };
    endSucceeded(open, { batch, outcomes, existing, remaining: new Set(missing.filter(isKept)) });
    return undefined;
  } catch (fault) {
    // Does not attempt again, because the error is a bug in the store.
    if (fault instanceof TransitionError) throw fault;
    const verdict = verdictOn(fault);
    isInDoubt ||= hasBegun && (verdict === "unknown" || placement.mayBeCommitted(fault));
    return { verdict, fault, isInDoubt };
  }
}

/**
 * Ends or defers the deletions in a successful attempt:
 *
 * | plant | first deletion of the plant | other deletions of the plant |
 * |---|---|---|
 * | deleted | `deleted` | `absent` |
 * | did not exist | `absent` | `absent` |
 * | locked | deferred, in doubt if an earlier attempt may have deleted it | deferred |
 * | its key is used | ended by the key, or deferred until its record is visible | deferred |
 * | kept by a trigger | `protected` | `protected` |
 * | remains | attempted again | attempted again |
 *
 * A deletion is postponed if another deletion in the batch has the same key. A postponed deletion is `absent` if its
 * plant does not exist, and otherwise deferred, because the key stays unused if the other deletion finds no plant.
 */
function endSucceeded(open: readonly Deletion[], { batch, outcomes, existing, remaining }: Succeeded): void {
  const endedByKey = new Set(batch.keyed.filter(({ isOpen }) => !isOpen));
  for (const one of open) {
    if (!one.isOpen) continue;
    const first = batch.firstDeletions.get(one.id);
    const outcome = outcomes.get(one.id);
    if (batch.postponed.has(one)) {
      if (existing.has(one.id)) one.defer();
      else one.end(endings.absent);
    } else if (remaining.has(one.id)) continue;
    else if (first === one || outcome === "protected") endBy(outcome, one);
    else if (first === undefined || first.isDeferred || endedByKey.has(first)) one.defer();
    else one.end(endings.absent);
  }
}

/** Ends or defers a deletion according to the plant's outcome. */
export function endBy(outcome: PlantOutcome | undefined, one: Deletion, fault?: unknown): void {
  if (outcome === "deferred") one.defer();
  else if (outcome === "protected") one.end(endings.protected(fault));
  else one.end(outcome === "deleted" ? endings.deleted : endings.absent);
}

/** Ends each deletion whose idempotency key already has a record. */
export async function endByKey(session: Session, placement: Placement, keyed: readonly Deletion[]): Promise<void> {
  if (keyed.length === 0) return;
  const rows = await placement.findKeyRecords(session, keyed);
  const records = new Map(rows.map((row) => [row[0], row]));
  for (const one of keyed) {
    const record = records.get(one.call.idempotencyKey ?? null);
    if (record === undefined || !one.isOpen) continue;
    const [, plantId, subject, seq] = record;
    if (seq === null) one.end(endings.unknown("the record of the idempotency key cannot be updated"));
    else if (plantId === String(one.id) && subject === one.call.subject) one.end(endings.deleted);
    else one.end(endings.keyReused);
  }
}

/** Returns whether a deletion has an idempotency key. */
export function hasKey({ call }: Deletion): boolean {
  return call.idempotencyKey !== undefined;
}

// Plants that an earlier attempt deleted are `deleted`. Plants without an outcome do not exist, even after a failover.
async function deleteUnlocked(
  session: Session,
  batch: PreparedBatch,
  { placement, isInDoubt }: AttemptMode,
): Promise<Map<bigint, PlantOutcome>> {
  const outcomes = await placement.deleteUnlockedPlants(session, batch);
  if (isInDoubt) for (const id of await findRecorded(session, placement, batch)) outcomes.set(id, "deleted");
  const missing = missingIn(batch, outcomes);
  // If a plant was deleted or a record was found, a commit has already waited for the standbys.
  const hasCommitted = [...outcomes.values()].includes("deleted");
  if (missing.length > 0 && !hasCommitted) await placement.findPlants(session, missing);
  return outcomes;
}

/**
 * Finds the outcome for a batch's only plant, which the server refuses to delete: `deleted` by an earlier attempt,
 * `protected` if it still exists, or `undefined` if it does not. Waits for locks on the plant.
 */
export async function findOutcomeOfRefused(
  session: Session,
  placement: Placement,
  batch: PreparedBatch,
): Promise<PlantOutcome | undefined> {
  const existing = await placement.runLookup(session, lockSql, [batch.ids]);
  // Reads the record after the wait for the lock, because the attempt's record is complete once the lock is released.
  const deleted = await findRecorded(session, placement, batch);
  if (deleted.length > 0) return "deleted";
  if (existing.length > 0) return "protected";
  await placement.waitForStandbys(session, [...batch.firstDeletions.keys()]);
  return undefined;
}

const lockSql = ({ plants }: StoreSchema, condition: string): string =>
  `SELECT id FROM ${plants} WHERE id = ANY($1::bigint[]) AND ${condition} FOR UPDATE`;

// As in `findKeysSql`, an UPDATE makes the found records durable. If a trigger suppresses the update, the statement
// fails, because the record exists and the plant must not be reported as not found.
const findRecordedSql = ({ deletions }: StoreSchema, condition: string): string => `
  WITH looked AS (
    UPDATE ${deletions} SET batch = batch
    WHERE plant_id = ANY($1::bigint[]) AND batch = $2::pg_catalog.uuid AND ${condition} RETURNING seq)
  SELECT CASE WHEN looked.seq IS NULL THEN ('a trigger prevents the update of the record of plant ' || plant_id)::bigint
    ELSE plant_id END AS plant_id, idempotency_key
  FROM ${deletions} LEFT JOIN looked USING (seq)
  WHERE plant_id = ANY($1::bigint[]) AND batch = $2::pg_catalog.uuid`;

// Returns the plants that the batch's attempts have deleted. Ignores a record with another key, which a cancelled call
// has used. For a locked plant, the result is not final, because an attempt may still commit.
async function findRecorded(
  session: Session,
  placement: Placement,
  { token, ids, firstDeletions }: PreparedBatch,
): Promise<bigint[]> {
  const rows = await placement.runLookup(session, findRecordedSql, [ids, token]);
  return toIds(rows.filter(([id, key]) => (firstDeletions.get(toId(id))?.call.idempotencyKey ?? null) === key));
}

function missingIn({ firstDeletions }: PreparedBatch, outcomes: ReadonlyMap<bigint, PlantOutcome>): bigint[] {
  return [...firstDeletions.keys()].filter((id) => !outcomes.has(id));
}
