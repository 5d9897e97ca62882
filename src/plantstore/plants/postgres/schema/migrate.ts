import type { Session } from "../server/session.ts";
import { checkDatabase, checkSettings, versionOf } from "./check-database.ts";
import { migrations } from "./migrations.ts";

// "PLNT": the lock by which processes that migrate databases of one server take turns.
const lockKey = 0x504c4e54;

/**
 * Migrates the database to the newest schema in one transaction, completely or not at all, and returns the versions
 * before and after. Of several processes that migrate at once, one does it and the others wait.
 *
 * @param session - without time-outs
 * @throws StoreOpenError when the schema is newer than this release, or the database is not fit for a store
 */
export async function migrate(session: Session): Promise<{ readonly from: number; readonly to: number }> {
  await checkSettings(session);
  // READ COMMITTED, to see what the process before has done.
  await session.begin(`BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_advisory_xact_lock(${lockKey})`);
  const from = await versionOf(session);
  const steps = migrations.slice(from);
  if (steps.length > 0) {
    await session.run([...steps, `UPDATE plantstore_schema SET version = ${migrations.length}`].join("; "));
  }
  await session.commit();
  await checkDatabase(session);
  return { from, to: migrations.length };
}
