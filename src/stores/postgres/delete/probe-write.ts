import type { StoreSchema } from "../schema/store-schema.ts";
import { readCommitted } from "../server/pinned-settings.ts";
import type { Session } from "../server/session.ts";
import { verdictOn } from "./fault-table.ts";

// Needs everything that a deletion needs, and changes nothing: locks on both tables, disk space for a record, and a
// commit that waits for the disk and for synchronous standbys, as it does even after the record was rolled back. The
// DELETE finds nothing, and locks no row; some engines lack LOCK TABLE, which Citus would run on every worker. With the
// id of a plant, Citus runs it on the worker of that plant.
const probeSql = ({ plants }: StoreSchema, id: bigint, recordSql: string): string => `
  DELETE FROM ${plants} WHERE id = ${id} AND id <> ${id};
  SAVEPOINT probe;
  ${recordSql};
  ROLLBACK TO SAVEPOINT probe`;

/** Checks by a write that a plant could be deleted. Rejects with the error; then discard the session. */
export async function probeWrite(session: Session, schema: StoreSchema, id: bigint, recordSql: string): Promise<void> {
  try {
    await session.runInTransaction(readCommitted, probeSql(schema, id, recordSql));
  } catch (fault) {
    // The store is healthy: a trigger or constraint only refuses this record.
    if (verdictOn(fault) !== "split") throw fault;
  }
}
