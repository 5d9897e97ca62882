import type { Outcomes, TakenDelete } from "../delete-queue.ts";
import { abortReasonOf } from "../plant-store.ts";
import { recordText } from "../record-text.ts";
import type { Row, Session } from "./session.ts";

// A plain `= ANY` locks rows in the order of one index scan, so overlapping batches of several processes
// do not deadlock; a join in the DELETE would let the planner choose another order.
const deleteSql = `
  WITH gone AS (DELETE FROM plants WHERE id = ANY($1::bigint[]) RETURNING id)
  INSERT INTO deletions (plant_id, subject, request_id, batch)
  SELECT gone.id, call.subject, call.request_id, $4::uuid
  FROM gone JOIN unnest($1::bigint[], $2::text[], $3::text[]) AS call (id, subject, request_id) USING (id)
  RETURNING plant_id`;

// An UPDATE of nothing instead of a SELECT: its commit waits for the disk and for synchronous standbys, so
// what it finds is as durable as what it could not wait for the first time.
const lookSql = `
  UPDATE deletions SET batch = batch WHERE plant_id = ANY($1::bigint[]) AND batch = $2::uuid RETURNING plant_id`;

/**
 * An id as the key of a `Map`: a number where that is exact, else its text. A text that V8 has not met before it interns
 * to look for it in a `Map`, which costs 0.3 µs, twice for each plant.
 */
type PlantKey = number | string;

/** Every number with as many decimal digits is exact. */
const exactDigits = 15;

/** Deletions that share a statement, and the token by which the record proves what it did. */
export interface DeleteBatch {
  readonly token: string;
  /** Who named each plant first; who names it again in the same batch comes too late. */
  readonly indexOf: ReadonlyMap<PlantKey, number>;
  readonly size: number;
  readonly parameters: { readonly ids: string; readonly subjects: string; readonly requestIds: string };
}

/**
 * Writes the parameters of a batch for the next try. Calls that are given up are told so and left out. The
 * token stays the same however often it is tried.
 */
export function toDeleteBatch(token: string, taken: readonly TakenDelete[]): DeleteBatch {
  const indexOf = new Map<PlantKey, number>();
  const ids: string[] = [];
  const subjects: string[] = [];
  const requestIds: string[] = [];
  taken.forEach(({ id, call, reject }, i) => {
    const reason = abortReasonOf(call);
    if (reason !== undefined) return reject(reason);
    const idText = String(id);
    const key = toPlantKey(idText);
    if (indexOf.has(key)) return;
    indexOf.set(key, i);
    ids.push(idText);
    subjects.push(quoted(call.subject));
    requestIds.push(quoted(call.requestId));
  });
  return {
    token,
    indexOf,
    size: taken.length,
    parameters: {
      ids: `{${ids.join()}}`,
      subjects: `{${subjects.join()}}`,
      requestIds: `{${requestIds.join()}}`,
    },
  };
}

function toPlantKey(idText: string): PlantKey {
  return idText.length <= exactDigits ? Number(idText) : idText;
}

// An element of an array in its text form (postgresql.org/docs/current/arrays.html#ARRAYS-IO).
function quoted(text: string): string {
  const kept = recordText(text);
  // To look first is several times cheaper than to replace nothing.
  return `"${special.test(kept) ? kept.replaceAll(everySpecial, "\\$&") : kept}"`;
}

const special = /["\\]/;
const everySpecial = /["\\]/g;

/** Runs a batch that was never sent before: one statement, one flight, one commit. */
export async function deleteBatch(session: Session, batch: DeleteBatch): Promise<Outcomes> {
  const { ids, subjects, requestIds } = batch.parameters;
  return outcomesOf(batch, await session.query(deleteSql, [ids, subjects, requestIds, batch.token]));
}

/**
 * Runs a batch that may have been committed already.
 *
 * The same statement comes first: where the lost attempt is still running it waits for its locks, so
 * that afterwards the record is complete. Reading first could miss a commit that comes later.
 */
export async function deleteBatchAgain(session: Session, batch: DeleteBatch): Promise<Outcomes> {
  await deleteBatch(session, batch);
  return outcomesOf(batch, await session.query(lookSql, [batch.parameters.ids, batch.token]));
}

function outcomesOf(batch: DeleteBatch, rows: readonly Row[]): Outcomes {
  const outcomes = Array.from({ length: batch.size }, () => false);
  for (const [id] of rows) {
    // Never: the column is NOT NULL. As a number nothing would be plant 0.
    if (typeof id !== "string") continue;
    const index = batch.indexOf.get(toPlantKey(id));
    if (index !== undefined) outcomes[index] = true;
  }
  return outcomes;
}
