import { expect } from "vitest";
import { createTempFolder } from "../../../protoport/testing/src/process/temp-folder.ts";
import { backUp, restore } from "../../../src/stores/index.ts";
import { openDatabase } from "../../../src/stores/sqlite/database.ts";
import { type BatchRow, prepareDeleteBatch } from "../../../src/stores/sqlite/delete-batch.ts";
import { deleteCall } from "./delete-call.ts";
import { type Held, type Interleaving, type Opened, type Pauses, upTo, withImport } from "./job-steps.ts";
import { plantsIn, recordedIn } from "./sqlite-file.ts";
import { urlOf } from "./moved-stores.ts";
import { openClient, runSql } from "./postgres-server.ts";

/** The jobs that only a store in a file has, and an import, of which a file stores a batch in several transactions. */
type FileJob = "a large import" | "backup" | "restore";

/** The facts about each job on a file. */
// oxfmt-ignore
export const fileInterleavings: Readonly<Record<FileJob, readonly Interleaving[]>> = {
  "a large import": [{
      fact: "skips a plant that is deleted between two transactions of its batch",
      plants: [10_002n],
      run: (opened) =>
        withImport(opened, async (running) => {
          const ids = upTo(10_002);
          // The first transaction, with 10,000 ids, ends before this returns.
          const adding = running.add(ids);
          const db = openDatabase({ file: fileOf(opened) });
          const rows: BatchRow[] = [1n, 10_002n].map((id) => [id, "", "", null]);
          expect(prepareDeleteBatch(db)(rows)).toEqual({ outcomes: ["deleted", "deleted"] });
          db.close();
          await expect(adding).resolves.toEqual({ added: 10_001, present: 0, deleted: 1 });
          expect(await opened.plants()).toEqual(ids.slice(1, -1));
        }),
    }],
  backup: [{
      fact: "copies earlier batches and deletions, and no later ones",
      plants: [1n, 2n, 3n],
      run: (opened) =>
        withImport(opened, async (running) => {
          using folder = createTempFolder();
          await running.add([1n, 4n]);
          await opened.store.delete(1n, deleteCall());
          const [deleting] = [opened.store.delete(2n, deleteCall()), backUp(fileOf(opened), folder.file("copy.db"))];
          await expect(deleting).resolves.toBe(true);
          await running.add([1n, 2n, 5n]);
          const copied = plantsIn(folder.file("copy.db"));
          const isIncluded = !copied.includes(2n);
          expect(copied).toEqual(isIncluded ? [3n, 4n] : [2n, 3n, 4n]);
          expect(recordedIn(folder.file("copy.db"))).toEqual(isIncluded ? [1n, 2n] : [1n]);
          expect(await opened.plants()).toEqual([3n, 4n, 5n]);
        }),
    }],
  restore: [{
      fact: "is refused while a server or import has the file open",
      plants: [1n, 2n],
      run: async (opened) => {
        using folder = createTempFolder();
        const [file, copy] = [fileOf(opened), folder.file("copy.db")];
        backUp(file, copy);
        await opened.store.delete(1n, deleteCall());
        expect(() => restore(file, copy)).toThrow(/another process has the file open/);
        await withImport(opened, async (running) => {
          await opened.store.close();
          expect(() => restore(file, copy)).toThrow(/another process has the file open/);
          await expect(running.add([1n, 3n])).resolves.toEqual({ added: 1, present: 0, deleted: 1 });
        });
        expect(await opened.plants()).toEqual([2n, 3n]);
        restore(file, copy);
        expect(await opened.plants()).toEqual([1n, 2n]);
      },
    }],
};

export function fileOf({ database: { location } }: Opened): string {
  if (location.kind !== "sqlite") throw new TypeError(`the store is in ${location.kind}`);
  return location.path;
}

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
