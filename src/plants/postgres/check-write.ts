import { StoreOpenError } from "../store-open-error.ts";
import { verdictOn } from "./fault-table.ts";
import type { Session } from "./session.ts";

// What the statements of deletions, of retries and of retention need.
const lackingSql = `
  SELECT string_agg(needed.kind || ' on ' || needed.relation, ', ') FROM (VALUES
    ('plants', 'SELECT'), ('plants', 'UPDATE'), ('plants', 'DELETE'),
    ('deletions', 'SELECT'), ('deletions', 'INSERT'), ('deletions', 'UPDATE'), ('deletions', 'DELETE')
  ) AS needed (relation, kind) WHERE NOT has_table_privilege(needed.relation, needed.kind)`;

// All that a deletion needs, and nothing is left of it: locks on both tables, room for a record, and a commit that waits
// for the disk and for synchronous standbys. The commit does so for the record that was rolled back.
const probeSql = `
  BEGIN;
  LOCK TABLE plants IN ROW EXCLUSIVE MODE;
  SAVEPOINT probe;
  INSERT INTO deletions (plant_id, subject, request_id, batch) VALUES (0, '', '', '00000000-0000-0000-0000-000000000000');
  ROLLBACK TO SAVEPOINT probe;
  COMMIT`;

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
 * Checks that a deletion could be committed now, which only a write can show: a full disk, a locked table and a
 * synchronous standby that is gone leave every read as it was. Rejects with the fault; the session is of no use then.
 */
export async function checkWrite(session: Session): Promise<void> {
  await checkRights(session);
  try {
    await session.run(probeSql);
  } catch (fault) {
    // A trigger or constraint refuses a record of a plant that nobody deletes.
    if (verdictOn(fault) !== "divide") throw fault;
    session.discard();
  }
}
