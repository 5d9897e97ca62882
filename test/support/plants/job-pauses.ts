import { expect } from "vitest";
import { openDatabase } from "../../../src/stores/sqlite/database.ts";
import { fileOf } from "./concurrent-file-jobs.ts";
import type { Held, Opened, Pauses } from "./job-steps.ts";
import { urlOf } from "./moved-stores.ts";
import { openClient, runSql } from "./postgres-server.ts";

/** How jobs on SQLite are stopped, which locks the whole file for a transaction. */
export const sqlitePauses: Pauses = {
  holdRetention: async (opened) => {
    const db = openDatabase({ file: fileOf(opened) });
    db.exec("BEGIN IMMEDIATE");
    return { release: () => db.close() };
  },
  oldRecordsSql: `
    WITH RECURSIVE records (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM records WHERE id < 10001)
    INSERT INTO deletions SELECT id, id, (unixepoch() - 3 * 86400) * 1000, '', '', id FROM records`,
};

/** Makes a trigger wait, by SQL with a function `pause()`, until it is released. */
async function hold({ database: { location } }: Opened, triggerSql: string): Promise<Held> {
  const url = urlOf(location);
  // Repeated attempts to lock, because waiting for a lock has a timeout.
  const sql = `CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
       WHILE NOT pg_try_advisory_xact_lock_shared(69) LOOP PERFORM pg_sleep(0.01); END LOOP;
       RETURN NULL;
     END $$;
     ${triggerSql}`;
  await runSql(url, sql);
  const holder = await openClient(url, "SELECT pg_advisory_lock(69)");
  const sleeping = "SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
  return { reached: () => expect.poll(() => runSql(url, sleeping)).not.toEqual([]), release: () => holder.end() };
}

/** How jobs on PostgreSQL are stopped. */
export const postgresPauses: Pauses = {
  holdImports: (opened) =>
    hold(
      opened,
      `CREATE CONSTRAINT TRIGGER pause AFTER INSERT ON plants DEFERRABLE INITIALLY DEFERRED
       FOR EACH ROW EXECUTE FUNCTION pause()`,
    ),
  holdRetention: (opened) => hold(opened, "CREATE TRIGGER pause BEFORE DELETE ON deletions EXECUTE FUNCTION pause()"),
  oldRecordsSql: `
    INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch)
    SELECT id, now() - interval '3 days', '', '', gen_random_uuid() FROM generate_series(1, 10001) AS id`,
};
