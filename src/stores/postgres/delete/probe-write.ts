import type { StoreSchema } from "../schema/store-schema.ts";
import { readCommitted } from "../server/pinned-settings.ts";
import type { Session } from "../server/session.ts";
import { verdictOn } from "./fault-table.ts";

// Requires what a deletion requires: locks on both tables, disk space for a record, and a commit that waits for the
// disk and for synchronous standbys. Changes no data, because the record is rolled back. The DELETE matches no row and
// locks the table. LOCK TABLE is not used, because some engines lack it, and Citus would run it on every worker.
const probeSql = ({ plants }: StoreSchema, id: bigint, recordSql: string): string => `
  DELETE FROM ${plants} WHERE id = ${id} AND id <> ${id};
  SAVEPOINT probe;
  ${recordSql};
  ROLLBACK TO SAVEPOINT probe`;

/** Checks with a write that a plant could be deleted. If the check rejects, discard the session. */
export async function probeWrite(session: Session, schema: StoreSchema, id: bigint, recordSql: string): Promise<void> {
  try {
    await session.runInTransaction(readCommitted, probeSql(schema, id, recordSql));
  } catch (fault) {
    // A trigger or constraint refuses only the probe's record, so the store is healthy.
    if (verdictOn(fault) !== "refused") throw fault;
  }
}
