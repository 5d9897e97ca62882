import type { StoreSchema } from "../schema/store-schema.ts";
import { readCommitted } from "../server/pinned-settings.ts";
import type { Session } from "../server/session.ts";
import { verdictOn } from "./fault-table.ts";

// Needs all that a deletion needs, and leaves nothing behind: locks on both tables, room for a record, and a commit
// that waits for the disk and for synchronous standbys, as it does even after the record was rolled back. The DELETE
// finds nothing, and locks no row; LOCK TABLE, which says the same, is missing on some engines, and Citus would lock
// the table on every worker. The plant is named, so that Citus asks its worker.
const probeSql = ({ plants }: StoreSchema, id: bigint, recordSql: string): string => `
  DELETE FROM ${plants} WHERE id = ${id} AND id <> ${id};
  SAVEPOINT probe;
  ${recordSql};
  ROLLBACK TO SAVEPOINT probe`;

/** Finds out by a write whether a plant could be deleted. Rejects with the fault; then discard the session. */
export async function probeWrite(session: Session, schema: StoreSchema, id: bigint, recordSql: string): Promise<void> {
  try {
    await session.runInTransaction(readCommitted, probeSql(schema, id, recordSql));
  } catch (fault) {
    // The store is well: a trigger or constraint refuses the record of a plant that nobody deletes.
    if (verdictOn(fault) !== "divide") throw fault;
  }
}
