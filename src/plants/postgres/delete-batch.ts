import type { PendingDelete } from "../delete-queue.ts";
import { toStorableText } from "../storable-text.ts";
import type { Row, Session } from "./session.ts";

// A plain `= ANY` locks rows in the order of one index scan, so overlapping batches of several processes do not
// deadlock; with a join in the DELETE the planner could choose another order.
//
// A trigger may drop a record without a word. Then the cast fails, and with it the statement: no plant is deleted
// without its record. Its SQLSTATE, 22P02, leads to the plant in question, and its message tells the operator.
const deleteSql = `
  WITH gone AS (DELETE FROM plants WHERE id = ANY($1::bigint[]) RETURNING id),
  recorded AS (
    INSERT INTO deletions (plant_id, subject, request_id, batch)
    SELECT gone.id, call.subject, call.request_id, $4::uuid
    FROM gone JOIN unnest($1::bigint[], $2::text[], $3::text[]) AS call (id, subject, request_id) USING (id)
    RETURNING plant_id)
  SELECT coalesce(plant_id, ('a trigger drops the record of plant ' || id)::bigint)
  FROM gone LEFT JOIN recorded ON plant_id = id`;

// The same for a single plant. Without the joins it takes the server a quarter less time.
const deleteOneSql = `
  WITH gone AS (DELETE FROM plants WHERE id = ANY($1::bigint[]) RETURNING id),
  recorded AS (
    INSERT INTO deletions (plant_id, subject, request_id, batch)
    SELECT id, ($2::text[])[1], ($3::text[])[1], $4::uuid FROM gone
    RETURNING plant_id)
  SELECT coalesce((SELECT plant_id FROM recorded), ('a trigger drops the record of plant ' || id)::bigint) FROM gone`;

// The same without waiting for the locks of others, and with a word on each plant that is there: `locked` by another
// transaction, `kept` by a trigger, or `deleted`. A plant that another transaction has deleted since the statement
// began counts as locked, and is gone at the next attempt.
const deleteUnlockedSql = `
  WITH free AS (SELECT id FROM plants WHERE id = ANY($1::bigint[]) FOR UPDATE SKIP LOCKED),
  gone AS (DELETE FROM plants WHERE id = ANY(ARRAY(SELECT id FROM free)) RETURNING id),
  recorded AS (
    INSERT INTO deletions (plant_id, subject, request_id, batch)
    SELECT gone.id, call.subject, call.request_id, $4::uuid
    FROM gone JOIN unnest($1::bigint[], $2::text[], $3::text[]) AS call (id, subject, request_id) USING (id)
    RETURNING plant_id)
  SELECT plants.id, CASE
    WHEN free.id IS NULL THEN 'locked'
    WHEN gone.id IS NULL THEN 'kept'
    WHEN plant_id IS NULL THEN ('a trigger drops the record of plant ' || plants.id)::bigint::text
    ELSE 'deleted' END
  FROM plants LEFT JOIN free USING (id) LEFT JOIN gone USING (id) LEFT JOIN recorded ON plant_id = plants.id
  WHERE plants.id = ANY($1::bigint[])`;

// With a row without an id where the server has synchronous standbys.
const stillThereSql = `
  SELECT id FROM plants WHERE id = ANY($1::bigint[])
  UNION ALL SELECT NULL WHERE current_setting('synchronous_standby_names', true) <> ''`;

// A message that nobody reads, because a transaction that writes nothing waits for no standby.
const waitForStandbysSql = "SELECT pg_logical_emit_message(true, 'plantstore', '')";

const lockSql = "SELECT id FROM plants WHERE id = ANY($1::bigint[]) FOR UPDATE";

// An UPDATE that changes nothing instead of a SELECT: its commit waits for the disk and for synchronous standbys, so
// what it finds is durable even if the first attempt could not wait for that. A trigger that silences it makes the
// statement fail: the record is there, so nobody may be told that the plant was not.
const lookSql = `
  WITH looked AS (
    UPDATE deletions SET batch = batch WHERE plant_id = ANY($1::bigint[]) AND batch = $2::uuid RETURNING seq)
  SELECT CASE WHEN looked.seq IS NULL THEN ('a trigger keeps the record of plant ' || plant_id)::bigint
    ELSE plant_id END AS plant_id
  FROM deletions LEFT JOIN looked USING (seq) WHERE plant_id = ANY($1::bigint[]) AND batch = $2::uuid`;

/** Deletions that share a statement, and the token that identifies their records. */
export interface DeleteBatch {
  readonly token: string;
  /** The index of the first deletion of each plant; a later one in the same batch finds the plant gone. */
  readonly indexOf: ReadonlyMap<bigint, number>;
  readonly parameters: { readonly ids: string; readonly subjects: string; readonly requestIds: string };
}

/**
 * Prepares a batch for the next attempt. The token stays the same for all attempts.
 *
 * After a fault, deletions that were given up meanwhile are rejected and left out. Before that their signals are not
 * read, which would create them: the queue has just checked those that had to wait.
 */
export function toDeleteBatch(token: string, pending: readonly PendingDelete[], afterFault: boolean): DeleteBatch {
  const indexOf = new Map<bigint, number>();
  const ids: string[] = [];
  const subjects: string[] = [];
  const requestIds: string[] = [];
  pending.forEach(({ id, call, reject }, i) => {
    if (afterFault && call.context.signal.aborted) return reject(call.context.signal.reason);
    if (indexOf.has(id)) return;
    indexOf.set(id, i);
    ids.push(String(id));
    subjects.push(quoted(call.subject));
    requestIds.push(quoted(call.requestId));
  });
  return {
    token,
    indexOf,
    parameters: {
      ids: `{${ids.join()}}`,
      subjects: `{${subjects.join()}}`,
      requestIds: `{${requestIds.join()}}`,
    },
  };
}

// Quotes an element of an array in text form (postgresql.org/docs/current/arrays.html#ARRAYS-IO).
function quoted(text: string): string {
  const kept = toStorableText(text);
  // Checking first is several times cheaper than a replacement that finds nothing.
  return `"${special.test(kept) ? kept.replaceAll(everySpecial, "\\$&") : kept}"`;
}

const special = /["\\]/;
const everySpecial = /["\\]/g;

/** Deletes the plants of a batch: one statement, one round trip, one commit. Returns those that it has deleted. */
export async function deletePlants(session: Session, { token, indexOf, parameters }: DeleteBatch): Promise<bigint[]> {
  const { ids, subjects, requestIds } = parameters;
  const sql = indexOf.size === 1 ? deleteOneSql : deleteSql;
  return toIds(await session.query(sql, [ids, subjects, requestIds, token]));
}

/** What became of a plant that was there. */
export type PlantFate = "deleted" | "locked" | "kept";

/**
 * Deletes the plants of a batch that no other transaction keeps locked, and returns the fate of each that was there. An
 * earlier attempt at the batch that is still running is another transaction, too.
 */
export async function deleteUnlockedPlants(
  session: Session,
  { token, parameters }: DeleteBatch,
): Promise<Map<bigint, PlantFate>> {
  const { ids, subjects, requestIds } = parameters;
  const rows = await session.query(deleteUnlockedSql, [ids, subjects, requestIds, token]);
  return new Map(rows.map(([id, fate]) => [toId(id), toFate(fate)]));
}

/**
 * Returns the plants that any attempt at a batch has deleted. For a plant that is locked by nobody, or was waited for,
 * the answer is final: otherwise, a commit that comes later could be missed.
 */
export async function findDeleted(session: Session, { token, parameters }: DeleteBatch): Promise<bigint[]> {
  return toIds(await session.query(lookSql, [parameters.ids, token]));
}

/**
 * Returns the plants of these that are there. The others are gone for good, even after a failover.
 *
 * What is seen to be gone may be gone only here: a deletion becomes visible without its standbys when its backend is
 * ended while it waits for them, or the server restarts. So the answer waits for a commit of its own, which the standbys
 * cannot have without all earlier ones.
 */
export async function findPlants(session: Session, ids: readonly bigint[]): Promise<bigint[]> {
  const rows = await session.query(stillThereSql, [`{${ids.join()}}`]);
  const there = rows.filter(([id]) => id !== null);
  if (rows.length > there.length) await session.query(waitForStandbysSql);
  return toIds(there);
}

/** Returns the plants of these that are there, and waits for those that other transactions keep locked. */
export async function lockPlants(session: Session, ids: readonly bigint[]): Promise<bigint[]> {
  return toIds(await session.query(lockSql, [`{${ids.join()}}`]));
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
