import type { Outcomes, PendingDelete } from "../delete-queue.ts";
import { toStorableText } from "../storable-text.ts";
import type { Row, Session } from "./session.ts";

// A plain `= ANY` locks rows in the order of one index scan, so overlapping batches of several processes do not
// deadlock; with a join in the DELETE the planner could choose another order.
const deleteSql = `
  WITH gone AS (DELETE FROM plants WHERE id = ANY($1::bigint[]) RETURNING id)
  INSERT INTO deletions (plant_id, subject, request_id, batch)
  SELECT gone.id, call.subject, call.request_id, $4::uuid
  FROM gone JOIN unnest($1::bigint[], $2::text[], $3::text[]) AS call (id, subject, request_id) USING (id)
  RETURNING plant_id`;

// An UPDATE that changes nothing instead of a SELECT: its commit waits for the disk and for synchronous standbys, so
// what it finds is durable even if the first attempt could not wait for that.
const lookSql = `
  UPDATE deletions SET batch = batch WHERE plant_id = ANY($1::bigint[]) AND batch = $2::uuid RETURNING plant_id`;

/** Deletions that share a statement, and the token that identifies their records. */
export interface DeleteBatch {
  readonly token: string;
  /** The index of the first deletion of each plant; a later one in the same batch finds the plant gone. */
  readonly indexOf: ReadonlyMap<bigint, number>;
  readonly size: number;
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
    size: pending.length,
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

/** Runs a batch for the first time: one statement, one round trip, one commit. */
export async function deleteBatch(session: Session, batch: DeleteBatch): Promise<Outcomes> {
  const { ids, subjects, requestIds } = batch.parameters;
  return outcomesOf(batch, await session.query(deleteSql, [ids, subjects, requestIds, batch.token]));
}

/**
 * Runs a batch that may have been committed before.
 *
 * The same statement runs first: if the lost attempt is still running, it waits for its locks, and afterwards the
 * record is complete. Reading first could miss a commit that comes later.
 */
export async function deleteBatchAgain(session: Session, batch: DeleteBatch): Promise<Outcomes> {
  await deleteBatch(session, batch);
  return outcomesOf(batch, await session.query(lookSql, [batch.parameters.ids, batch.token]));
}

function outcomesOf(batch: DeleteBatch, rows: readonly Row[]): Outcomes {
  const outcomes = Array.from({ length: batch.size }, () => false);
  for (const [id] of rows) {
    // Never happens: the column is NOT NULL.
    if (typeof id !== "string") continue;
    const index = batch.indexOf.get(BigInt(id));
    if (index !== undefined) outcomes[index] = true;
  }
  return outcomes;
}
