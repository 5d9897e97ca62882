import { StoreOpenError } from "../store-open-error.ts";
import { checkWorkerOf } from "./delete-batch.ts";
import { verdictOn } from "./fault-table.ts";
import type { Session } from "./session.ts";

// The rights that the statements of deletions, of retries and of retention need.
const lackingSql = `
  SELECT string_agg(needed.kind || ' on ' || needed.relation, ', ') FROM (VALUES
    ('plants', 'SELECT'), ('plants', 'UPDATE'), ('plants', 'DELETE'),
    ('deletions', 'SELECT'), ('deletions', 'INSERT'), ('deletions', 'UPDATE'), ('deletions', 'DELETE')
  ) AS needed (relation, kind) WHERE NOT has_table_privilege(needed.relation, needed.kind)`;

// Needs all that a deletion needs, and leaves nothing behind: locks on both tables, room for a record, and a commit
// that waits for the disk and for synchronous standbys, as it does even after the record was rolled back.
const probeSql = (id: bigint, lockSql: string): string => `
  BEGIN;
  ${lockSql};
  SAVEPOINT probe;
  INSERT INTO deletions (plant_id, subject, request_id, batch)
    VALUES (${id}, '', '', '00000000-0000-0000-0000-000000000000');
  ROLLBACK TO SAVEPOINT probe;
  COMMIT`;

const lockTableSql = "LOCK TABLE plants IN ROW EXCLUSIVE MODE";

// LOCK TABLE would lock the table on every worker of Citus, and fail if one is away. This takes the same lock on the
// worker of the plant, and deletes nothing.
const lockOnWorkerSql = (id: bigint): string => `DELETE FROM plants WHERE id = ${id} AND ctid IS NULL`;

/**
 * Checks that the user has the rights that deleting needs.
 *
 * @throws StoreOpenError naming those that are missing
 */
export async function checkRights(session: Session): Promise<void> {
  const [row] = await session.query(lackingSql);
  const lacking = row?.[0];
  if (typeof lacking === "string") throw new StoreOpenError(`the user lacks ${lacking}`);
}

/**
 * Checks that a deletion could be committed now, which only a write can show: a full disk, a locked table or a missing
 * synchronous standby does not affect reads. Rejects with the fault; then discard the session.
 */
export async function checkWrite(session: Session): Promise<void> {
  await checkRights(session);
  if (!session.shards.areThere) return await probe(session, 0n, lockTableSql);
  await checkEachWorker(session, async (id) => {
    await probe(session, id, lockOnWorkerSql(id));
    await checkWorkerOf(session, id);
  });
}

/** Checks, without a write, that every worker that can be reached makes deletions durable. */
export async function checkWorkers(session: Session): Promise<void> {
  await checkEachWorker(session, (id) => checkWorkerOf(session, id));
}

/**
 * Runs a check for a plant of each worker. A worker that is away does not keep the plants of others from being deleted,
 * so it is a fault only if all workers are. A worker that refuses is always a fault, which only the operator can mend.
 */
async function checkEachWorker(session: Session, check: (id: bigint) => Promise<void>): Promise<void> {
  const plants = session.shards.oneOfEach;
  const faults: unknown[] = [];
  for (const id of plants) {
    try {
      await check(id);
    } catch (fault) {
      session.discard();
      if (verdictOn(fault) === "give-up") throw fault;
      faults.push(fault);
    }
  }
  if (faults.length > 0 && faults.length === plants.length) throw faults[0];
}

async function probe(session: Session, id: bigint, lockSql: string): Promise<void> {
  try {
    await session.run(probeSql(id, lockSql));
  } catch (fault) {
    // The store is well: a trigger or constraint refuses the record of a plant that nobody deletes.
    if (verdictOn(fault) !== "divide") throw fault;
    session.discard();
  }
}
