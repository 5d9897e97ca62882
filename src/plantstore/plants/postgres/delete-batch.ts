import { randomUUID } from "node:crypto";
import type { PendingDelete } from "../delete-queue.ts";
import { toStorableText } from "../storable-text.ts";
import { idsIn } from "./int64-array.ts";
import type { Row, Session } from "./session.ts";

/** The statements of a batch. */
interface Statements {
  readonly deleteAll: string;
  /** The same for a single plant. Without the joins it takes the server a quarter less time. */
  readonly deleteOne: string;
  /**
   * The same without waiting for the locks of others. It says of each plant that is there whether it is `locked` by
   * another transaction, `kept` by a trigger, or `deleted`. A plant that another transaction has deleted since the
   * statement began counts as locked, and is gone at the next attempt.
   */
  readonly deleteUnlocked: string;
}

/**
 * Writes the statements for records with these columns; each column is an array parallel to the ids.
 *
 * A plain `= ANY` locks rows in the order of one index scan, so overlapping batches of several processes do not
 * deadlock; with a join in the DELETE the planner could choose another order.
 *
 * A plant whose idempotency key has a record already is left alone, since it may have been restored: the look for keys
 * that follows answers its caller. Only a key that another process uses at the same moment fails the statement.
 *
 * A trigger may silently drop a record. Then the cast fails, and with it the statement: no plant is deleted without its
 * record. The SQLSTATE, 22P02, has the batch divided until the plant is found, and the message tells the operator.
 */
function writeStatements(columns: readonly string[], arrays: readonly string[], wanted = "$1::bigint[]"): Statements {
  const names = columns.join(", ");
  const recordAll = `
    INSERT INTO deletions (plant_id, batch, ${names}) SELECT gone.id, $4::uuid, ${names}
    FROM gone JOIN unnest($1::bigint[], ${arrays.join(", ")}) AS call (id, ${names}) USING (id)
    RETURNING plant_id`;
  return {
    deleteAll: `
      WITH gone AS (DELETE FROM plants WHERE id = ANY(${wanted}) RETURNING id), recorded AS (${recordAll})
      SELECT coalesce(plant_id, ('a trigger drops the record of plant ' || id)::bigint)
      FROM gone LEFT JOIN recorded ON plant_id = id`,
    deleteOne: `
      WITH gone AS (DELETE FROM plants WHERE id = ANY(${wanted}) RETURNING id),
      recorded AS (
        INSERT INTO deletions (plant_id, batch, ${names})
        SELECT id, $4::uuid, ${arrays.map((array) => `(${array})[1]`).join(", ")} FROM gone
        RETURNING plant_id)
      SELECT coalesce((SELECT plant_id FROM recorded), ('a trigger drops the record of plant ' || id)::bigint) FROM gone`,
    deleteUnlocked: `
      WITH free AS (SELECT id FROM plants WHERE id = ANY($1::bigint[]) FOR UPDATE SKIP LOCKED),
      gone AS (DELETE FROM plants WHERE id = ANY(ARRAY(SELECT id FROM free)) RETURNING id), recorded AS (${recordAll})
      SELECT plants.id, CASE
        WHEN free.id IS NULL THEN 'locked'
        WHEN gone.id IS NULL THEN 'kept'
        WHEN plant_id IS NULL THEN ('a trigger drops the record of plant ' || plants.id)::bigint::text
        ELSE 'deleted' END
      FROM plants LEFT JOIN free USING (id) LEFT JOIN gone USING (id) LEFT JOIN recorded ON plant_id = plants.id
      WHERE plants.id = ANY($1::bigint[])`,
  };
}

const withoutKeys = writeStatements(["subject", "request_id"], ["$2::text[]", "$3::text[]"]);
const withKeys = writeStatements(
  ["subject", "request_id", "idempotency_key"],
  ["$2::text[]", "$3::text[]", "$5::text[]"],
  `ARRAY(SELECT id FROM unnest($1::bigint[], $5::text[]) AS call (id, key) WHERE key IS NULL OR key <> ALL(
    ARRAY(SELECT idempotency_key FROM deletions WHERE idempotency_key = ANY($5::text[]))))`,
);

// Citus runs this function on the worker of the first plant.
const deleteOnWorkerSql = `
  SELECT deleted, locked, kept FROM plantstore_delete(
    $1::bigint, $2::bigint[], $3::text[], $4::text[], $5::uuid, $6::text[], $7::boolean)`;

// Adds a row without an id if the server has synchronous standbys.
const stillThereSql = `
  SELECT id FROM plants WHERE id = ANY($1::bigint[])
  UNION ALL SELECT NULL WHERE current_setting('synchronous_standby_names', true) <> ''`;

const stillThereOnWorkerSql = "SELECT id FROM plants WHERE id = ANY($1::bigint[])";

// A message that nobody reads, because a transaction that writes nothing waits for no standby.
const waitForStandbysSql = "SELECT pg_logical_emit_message(true, 'plantstore', '')";

const lockSql = "SELECT id FROM plants WHERE id = ANY($1::bigint[]) FOR UPDATE";

// An UPDATE that changes nothing instead of a SELECT: its commit waits for the disk and for synchronous standbys, so
// the records that it finds are durable even if the first attempt could not wait for that. If a trigger suppresses the
// update, the statement fails: the record exists, so no caller may be told that the plant did not.
const lookSql = `
  WITH looked AS (
    UPDATE deletions SET batch = batch WHERE plant_id = ANY($1::bigint[]) AND batch = $2::uuid RETURNING seq)
  SELECT CASE WHEN looked.seq IS NULL THEN ('a trigger keeps the record of plant ' || plant_id)::bigint
    ELSE plant_id END AS plant_id, idempotency_key
  FROM deletions LEFT JOIN looked USING (seq) WHERE plant_id = ANY($1::bigint[]) AND batch = $2::uuid`;

// An UPDATE, for the same reason.
const lookForKeysSql = `
  WITH looked AS (UPDATE deletions SET batch = batch WHERE idempotency_key = ANY($1::text[]) RETURNING seq)
  SELECT idempotency_key, plant_id, subject, looked.seq
  FROM deletions LEFT JOIN looked USING (seq) WHERE idempotency_key = ANY($1::text[])`;

// On Citus a key names its plant, so only the workers of these plants need to look.
const lookForKeysOfPlantsSql = lookForKeysSql.replaceAll(
  "= ANY($1::text[])",
  "= ANY($1::text[]) AND plant_id = ANY($2::bigint[])",
);

/** Deletions that share a statement, and the token that identifies their records. */
export interface DeleteBatch {
  readonly token: string;
  /**
   * The first deletion of each plant, which is in the statement; a later one in the same batch finds the plant gone.
   */
  readonly firstOf: ReadonlyMap<bigint, PendingDelete>;
  /** The deletions with an idempotency key, in the statement or not. */
  readonly keyed: readonly PendingDelete[];
  /** The deletions that are left out of the statement because it has another one with their key. */
  readonly postponed: ReadonlySet<PendingDelete>;
  readonly ids: string;
  /** What the statement deletes and records, in the order of its parameters. */
  readonly values: readonly string[];
}

/** What has happened before an attempt. */
export interface Before {
  /** Whether deletions may have been given up since the queue has checked them. Default false. */
  readonly afterFault?: boolean;
  /** The deletions whose callers were answered by their key; they are left out. */
  readonly told?: ReadonlySet<PendingDelete>;
}

/**
 * Prepares a batch for the next attempt. The token stays the same for all attempts.
 *
 * After a fault, deletions that were given up meanwhile are rejected and left out. Before the first fault, signals are
 * not read, because reading creates them, and the queue has just checked the deletions that had to wait.
 */
export function toDeleteBatch(
  token: string,
  pending: readonly PendingDelete[],
  { afterFault = false, told }: Before = {},
): DeleteBatch {
  const firstOf = new Map<bigint, PendingDelete>();
  const keyed: PendingDelete[] = [];
  const postponed = new Set<PendingDelete>();
  const keys = new Set<string>();
  const subjects: string[] = [];
  const requestIds: string[] = [];
  for (const one of pending) {
    const { id, call, reject } = one;
    const key = call.idempotencyKey;
    if (afterFault && call.context.signal.aborted) {
      reject(call.context.signal.reason);
      continue;
    }
    if (key !== undefined) {
      if (told?.has(one) === true) continue;
      keyed.push(one);
    }
    if (firstOf.has(id)) continue;
    if (key !== undefined) {
      if (keys.has(key)) {
        postponed.add(one);
        continue;
      }
      keys.add(key);
    }
    firstOf.set(id, one);
    subjects.push(quoted(call.subject));
    requestIds.push(quoted(call.requestId));
  }
  const ids = toArray([...firstOf.keys()]);
  const values = [ids, toArray(subjects), toArray(requestIds), token];
  if (keyed.length > 0) values.push(toArray(Array.from(firstOf.values(), quotedKeyOf)));
  return { token, firstOf, keyed, postponed, ids, values };
}

function quotedKeyOf({ call }: PendingDelete): string {
  return call.idempotencyKey === undefined ? "NULL" : quoted(call.idempotencyKey);
}

function toArray(elements: readonly (string | bigint)[]): string {
  return `{${elements.join()}}`;
}

// Quotes an element of an array in text form (postgresql.org/docs/current/arrays.html#ARRAYS-IO).
function quoted(text: string): string {
  const kept = toStorableText(text);
  // Checking first is several times cheaper than a replacement that finds nothing.
  return `"${special.test(kept) ? kept.replaceAll(everySpecial, "\\$&") : kept}"`;
}

const special = /["\\]/;
const everySpecial = /["\\]/g;

/** Deletes the plants of a batch in one statement, round trip and commit. Returns the plants that it has deleted. */
export async function deletePlants(session: Session, batch: DeleteBatch): Promise<bigint[]> {
  if (session.shards.areThere) return idsIn((await deleteOnWorker(session, batch, false))?.[0]).map(BigInt);
  const { deleteOne, deleteAll } = statementsOf(batch);
  return toIds(await session.query(batch.firstOf.size === 1 ? deleteOne : deleteAll, batch.values));
}

function statementsOf({ keyed }: DeleteBatch): Statements {
  return keyed.length === 0 ? withoutKeys : withKeys;
}

/** The fate of a plant that was there. */
export type PlantFate = "deleted" | "locked" | "kept";

/**
 * Deletes the plants of a batch that no other transaction keeps locked, and returns the fate of each plant that was
 * there. An earlier attempt at the batch that is still running is another transaction, too.
 */
export async function deleteUnlockedPlants(session: Session, batch: DeleteBatch): Promise<Map<bigint, PlantFate>> {
  if (session.shards.areThere) return toFates(await deleteOnWorker(session, batch, true));
  const rows = await session.query(statementsOf(batch).deleteUnlocked, batch.values);
  return new Map(rows.map(([id, fate]) => [toId(id), toFate(fate)]));
}

/**
 * Returns the plants that any attempt at a batch has deleted, except those deleted for another key, whose caller has
 * gone. The answer is final only for plants that are not locked, or whose lock was waited for: otherwise, a later
 * commit could be missed.
 */
export async function findDeleted(session: Session, { token, ids, firstOf }: DeleteBatch): Promise<bigint[]> {
  const rows = await session.query(lookSql, [ids, token]);
  return toIds(rows.filter(([id, key]) => (firstOf.get(toId(id))?.call.idempotencyKey ?? null) === key));
}

/** Deletes on Citus, and returns the arrays of the plants that are deleted, locked and kept. */
async function deleteOnWorker(session: Session, batch: DeleteBatch, skips: boolean): Promise<Row | undefined> {
  const [one] = batch.firstOf.keys();
  const [ids, subjects, requestIds, token, keys = null] = batch.values;
  const [row] = await session.query(deleteOnWorkerSql, [one, ids, subjects, requestIds, token, keys, skips]);
  return row;
}

/** Rejects if the worker of a plant would not make a deletion durable. */
export async function checkWorkerOf(session: Session, id: bigint): Promise<void> {
  await session.query(deleteOnWorkerSql, [id, "{}", "{}", "{}", null, null, false]);
}

/** Resolves once the synchronous standbys of the worker of a plant have all that it has committed. */
export async function waitForStandbysOf(session: Session, id: bigint): Promise<void> {
  await session.query(deleteOnWorkerSql, [id, "{}", "{}", "{}", randomUUID(), null, false]);
}

function toFates(row: Row | undefined): Map<bigint, PlantFate> {
  const fates = new Map<bigint, PlantFate>();
  const kinds: readonly PlantFate[] = ["deleted", "locked", "kept"];
  for (const [i, fate] of kinds.entries()) for (const id of idsIn(row?.[i])) fates.set(BigInt(id), fate);
  return fates;
}

/** The record of the deletion for which a key was used. */
export interface KeyRecord {
  readonly plantId: bigint;
  readonly subject: string;
  /** Whether it is durable now; if not, it is being dropped, or a trigger has suppressed the update. */
  readonly isDurable: boolean;
}

/** Returns the records with the idempotency keys of these deletions, by key. */
export async function findKeys(session: Session, keyed: readonly PendingDelete[]): Promise<Map<string, KeyRecord>> {
  const keys = toArray([...new Set(keyed.map(quotedKeyOf))]);
  const rows = session.shards.areThere
    ? await session.query(lookForKeysOfPlantsSql, [keys, toArray(keyed.map(({ id }) => id))])
    : await session.query(lookForKeysSql, [keys]);
  return new Map(
    rows.map(([key, plantId, subject, seq]) => [
      key ?? "",
      { plantId: toId(plantId), subject: subject ?? "", isDurable: seq !== null },
    ]),
  );
}

/**
 * Returns which of these plants are there. The others are gone for good, even after a failover.
 *
 * A plant may be gone on this server only: a deletion becomes visible before its standbys have it when its backend is
 * ended while it waits for them, or the server restarts. So the answer waits for a commit of its own, which the
 * standbys cannot have without all earlier ones.
 */
export async function findPlants(session: Session, ids: readonly bigint[]): Promise<bigint[]> {
  // The function that deletes has waited for the standbys of the worker.
  if (session.shards.areThere) return toIds(await session.query(stillThereOnWorkerSql, [toArray(ids)]));
  const rows = await session.query(stillThereSql, [toArray(ids)]);
  const there = rows.filter(([id]) => id !== null);
  if (rows.length > there.length) await session.query(waitForStandbysSql);
  return toIds(there);
}

/** Returns which of these plants are there, after waiting for those that other transactions keep locked. */
export async function lockPlants(session: Session, ids: readonly bigint[]): Promise<bigint[]> {
  return toIds(await session.query(lockSql, [toArray(ids)]));
}

function toIds(rows: readonly Row[]): bigint[] {
  return rows.map(([id]) => toId(id));
}

function toId(text: string | null | undefined): bigint {
  // Never happens: the columns are NOT NULL.
  if (typeof text !== "string") throw new TypeError("the id of a plant is missing");
  return BigInt(text);
}

function toFate(text: string | null | undefined): PlantFate {
  // Never happens: the statement has no other words.
  if (text !== "deleted" && text !== "locked" && text !== "kept") throw new TypeError(`a plant is ${text}`);
  return text;
}
