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
// that waits for the disk and for synchronous standbys, as it does even after the record was rolled back. The DELETE
// finds nothing, and locks no row; LOCK TABLE, which says the same, is missing on some engines, and Citus would lock
// the table on every worker. The plant is named, so that Citus asks its worker.
const probeSql = (id: bigint, recordSql: string): string => `
  BEGIN;
  DELETE FROM plants WHERE id = ${id} AND id <> ${id};
  SAVEPOINT probe;
  ${recordSql};
  ROLLBACK TO SAVEPOINT probe;
  COMMIT`;

const recordSql = `INSERT INTO deletions (plant_id, subject, request_id, batch)
  VALUES (0, '', '', '00000000-0000-0000-0000-000000000000')`;

// Citus would take the number from a sequence of the coordinator, and then wait for the standbys of that, which a
// deletion that a worker runs does not. Each look makes up its own, among so many that no two looks at once have the
// same: one would wait until the other has taken its record back. It is negative because those of deletions begin at 1.
const recordOnWorkerSql = (id: bigint): string => `
  INSERT INTO deletions (seq, plant_id, subject, request_id, batch) OVERRIDING SYSTEM VALUE
  VALUES (-(1 + random() * 1e15)::bigint, ${id}, '', '', '00000000-0000-0000-0000-000000000000')`;

// The shortest time for the check of a worker, in milliseconds, if any is left.
const workerMsMin = 1_000;

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
  if (!session.shards.areThere) return await probe(session, probeSql(0n, recordSql));
  await checkEachWorker(session, async (id) => {
    await probe(session, probeSql(id, recordOnWorkerSql(id)));
    await checkWorkerOf(session, id);
  });
}

/** Checks, without a write, that every worker that can be reached makes deletions durable. */
export async function checkWorkers(session: Session): Promise<void> {
  await checkEachWorker(session, (id) => checkWorkerOf(session, id));
}

/**
 * Runs a check for a plant of each worker. A worker that is away does not keep the plants of others from being deleted,
 * so it is a fault only if all workers are, and has a part of the time only. A worker that refuses is always a fault,
 * which only the operator can mend.
 */
async function checkEachWorker(session: Session, check: (id: bigint) => Promise<void>): Promise<void> {
  const plants = session.shards.oneOfEach;
  const faults: unknown[] = [];
  const endMs = session.untilMs;
  for (const [i, id] of plants.entries()) {
    const nowMs = performance.now();
    session.untilMs = Math.min(endMs, nowMs + Math.max(workerMsMin, (endMs - nowMs) / (plants.length - i)));
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

async function probe(session: Session, script: string): Promise<void> {
  try {
    await session.run(script);
  } catch (fault) {
    // The store is well: a trigger or constraint refuses the record of a plant that nobody deletes.
    if (verdictOn(fault) !== "divide") throw fault;
    session.discard();
  }
}
