import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { openPostgresDatabase } from "../../../../../../src/stores/postgres/all-plants/plant-database.ts";
// oxfmt-ignore
import { dropOldRecords, startRetention
} from "../../../../../../src/stores/postgres/all-plants/retention.ts";
import { singleServer, type StoreTables } from "../../../../../../src/stores/postgres/delete/store-tables.ts";
import { openPostgresStore } from "../../../../../../src/stores/postgres/postgres-store.ts";
import { storeSchema } from "../../../../../../src/stores/postgres/schema/store-schema.ts";
import { readServerUrl } from "../../../../../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../../../../../src/stores/postgres/server/session.ts";
import type { Upkeep } from "../../../../../../src/stores/contract/store-options.ts";
import { closing, collect } from "@protoport/testing/process";
// oxfmt-ignore
import { deleteCall, openClient, runSql, schemaOf, startCuttingProxy, startHangingProxy, startPostgresOfFile
} from "../../../../../support/plants/index.ts";

const server = await startPostgresOfFile();
const onSingleServer = (session: Session): Promise<StoreTables> => Promise.resolve(singleServer(schemaOf(session)));

describe("the retention job in PostgreSQL", () => {
  /** Creates a database with this many records, one per minute. The newest record is half a minute old. */
  async function createRecords(count: number): Promise<string> {
    const url = await server.createPlants();
    const sql = `INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch)
       SELECT i, now() - i * interval '1 minute' + interval '30 seconds', '', '', gen_random_uuid() FROM generate_series(1, ${count}) AS i`;
    await runSql(url, sql);
    return url;
  }

  test("drops the oldest first, once no other transaction has locked them", async () => {
    const url = await createRecords(1_500);
    const other = await openClient(url, "BEGIN; SELECT FROM deletions WHERE plant_id > 1490 FOR UPDATE");
    // The session has no timeouts, as behind PgBouncer.
    await using session = closing(new Session(readServerUrl(url)));
    const drop = (fromUs?: number) => dropOldRecords(session, schemaOf(session), 3_600_000, { max: 1_000, fromUs });
    await expect(drop()).rejects.toMatchObject({ code: "55P03" });
    expect(await countRecords(url)).toBe(1_500);
    const dropping = drop();
    const waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%deletions%'";
    await expect.poll(() => runSql(url, waiting)).not.toEqual([]);
    await other.end();
    const { reachedTimeUs: fromUs, ...slice } = await dropping;
    expect(slice).toEqual({ count: 1_000, isMore: true });
    expect(await runSql(url, "SELECT max(plant_id) FROM deletions")).toEqual([{ max: "500" }]);
    // The next slice continues where the last one ended.
    await expect(drop(fromUs)).resolves.toMatchObject({ count: 440, isMore: false });
  });

  test("continues after a slice whose records a trigger keeps", async () => {
    const url = await createRecords(100);
    const sql = `INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch)
       SELECT -i, '2026-01-02T03:04:05Z'::timestamptz + i * interval '40 us', '', '', gen_random_uuid() FROM generate_series(1, 24000) AS i;
       CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
       CREATE TRIGGER keep BEFORE DELETE ON deletions FOR EACH ROW WHEN (OLD.plant_id < 0) EXECUTE FUNCTION keep()`;
    await runSql(url, sql);
    await using _ = closing(await openPostgresStore({ url, deletionsKeptMs: 3_600_000 }));
    await expect.poll(() => countRecords(url)).toBe(24_060);
  });

  test.each([
    // The first slice ends at that time.
    { moment: "2026-01-02T03:04:05Z", slices: [0, 200, 50] },
    { moment: "1970-01-01T00:00:00Z", slices: [200, 50] },
  ])("drops all records with the timestamp $moment in one slice", async ({ moment, slices }) => {
    const url = await createRecords(250);
    await runSql(url, `UPDATE deletions SET deleted_at = '${moment}' WHERE plant_id > 50`);
    const session = new Session(readServerUrl(url));
    const counts: number[] = [];
    let fromUs: number | undefined;
    for (let isMore = true; isMore;) {
      const slice = await dropOldRecords(session, schemaOf(session), 1, { max: 80, fromUs });
      counts.push(slice.count);
      ({ isMore, reachedTimeUs: fromUs } = slice);
    }
    await session.close();
    expect(counts).toEqual(slices);
  });

  test("drops different records in concurrent processes", async () => {
    const url = await createRecords(45_000);
    const dropAll = async (): Promise<number> => {
      const session = new Session(readServerUrl(url));
      let dropped = 0;
      let fromUs: number | undefined;
      for (let isMore = true; isMore;) {
        const slice = await dropOldRecords(session, schemaOf(session), 3_600_000, { max: 500, fromUs });
        dropped += slice.count;
        ({ isMore, reachedTimeUs: fromUs } = slice);
      }
      await session.close();
      return dropped;
    };
    expect((await Promise.all([dropAll(), dropAll(), dropAll()])).reduce((sum, count) => sum + count)).toBe(44_940);
    expect(await countRecords(url)).toBe(60);
  });

  test("continues in another process when one hangs before its commit", async () => {
    const url = await createRecords(100);
    await using proxy = await startHangingProxy(server.socketFolder);
    const hanging = new Session(readServerUrl(url.replace(server.socketFolder, proxy.socketFolder)));
    const dropped = dropOldRecords(hanging, schemaOf(hanging), 3_600_000, { max: 1_000 });
    dropped.catch(() => undefined);
    await proxy.hangs;
    const session = new Session(readServerUrl(url));
    const drop = async () => (await dropOldRecords(session, schemaOf(session), 3_600_000, { max: 1_000 })).count;
    await expect.poll(drop).toBe(40);
    await expect(dropped).rejects.toThrow();
    await Promise.all([session.close(), hanging.close()]);
  });

  test("reads only a slice's records, even without statistics", async () => {
    const url = await createRecords(45_000);
    const reports: Upkeep[] = [];
    const onUpkeep = (upkeep: Upkeep): void => void reports.push(upkeep);
    const store = await openPostgresStore({ url, deletionsKeptMs: 2 * 3_600_000, onUpkeep });
    await expect.poll(() => reports).toMatchObject([{ count: 44_880 }]);
    await store.close();
    // Each record is read twice. Its page is also read when the record is written and when it is dropped.
    const readSql = `
      SELECT seq_tup_read, (SELECT idx_tup_read < 91000 FROM pg_stat_user_indexes WHERE indexrelid = to_regclass('deletions_by_time')) AS twice,
        (SELECT heap_blks_hit < 100000 FROM pg_statio_user_tables AS io WHERE io.relid = records.relid) AS once
      FROM pg_stat_user_tables AS records WHERE relid = 'deletions'::regclass AND n_tup_del = 44880`;
    await expect.poll(() => runSql(url, readSql)).toEqual([{ seq_tup_read: "0", twice: true, once: true }]);
  });

  test("attempts only once to drop a record that a trigger keeps", async () => {
    const url = await createRecords(45_000);
    const sql = `CREATE SEQUENCE looks;
       CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN PERFORM nextval('looks'); RETURN NULL; END $$;
       CREATE TRIGGER keep BEFORE DELETE ON deletions FOR EACH ROW WHEN (OLD.plant_id > 24990) EXECUTE FUNCTION keep()`;
    await runSql(url, sql);
    const store = await openPostgresStore({ url, deletionsKeptMs: 3_600_000 });
    // The trigger keeps slightly more records than a slice has.
    await expect.poll(() => countRecords(url)).toBe(20_070);
    await store.close();
    expect(await runSql(url, "SELECT last_value FROM looks")).toEqual([{ last_value: "20010" }]);
  });

  test("the oldest records are listed first, for any insertion order", async () => {
    await using database = await openPostgresDatabase(await createRecords(3));
    expect((await collect(database.listDeletions())).flat().map(({ plantId }) => plantId)).toEqual([3n, 2n, 1n]);
  });

  test("records from exactly the given time are listed", async () => {
    const url = await createRecords(1);
    await runSql(url, "UPDATE deletions SET deleted_at = '2026-01-02T03:04:05.678Z'");
    await using database = await openPostgresDatabase(url);
    const listed = await collect(database.listDeletions({ since: new Date("2026-01-02T03:04:05.678Z") }));
    expect(listed.flat()).toHaveLength(1);
  });

  test("cancels the running drop statement when it is stopped", async () => {
    const url = await createRecords(1);
    await using locked = await shortenLocked(url, url);
    await locked.stopRetention();
    await expect.poll(() => runSql(url, locked.waiting)).toEqual([]);
    expect(await countRecords(url)).toBe(1);
    expect(locked.reports).toEqual([]);
  });

  test("stops although the server does not respond", async () => {
    const url = await createRecords(1);
    await using proxy = await startCuttingProxy(server.socketFolder);
    await using locked = await shortenLocked(url, url.replace(server.socketFolder, proxy.socketFolder));
    proxy.freeze();
    await locked.stopRetention();
  });

  test("reports the records that were dropped before it was stopped", async () => {
    const url = await createRecords(30_000);
    const locking = await openClient(url, "SELECT pg_advisory_lock(1)");
    const sql = `CREATE SEQUENCE slices;
       CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         IF nextval('slices') > 1 THEN PERFORM pg_advisory_xact_lock(1); END IF;
         RETURN NULL;
       END $$;
       CREATE TRIGGER wait BEFORE DELETE ON deletions EXECUTE FUNCTION wait()`;
    await runSql(url, sql);
    await using proxy = await startCuttingProxy(server.socketFolder);
    const through = readServerUrl(url.replace(server.socketFolder, proxy.socketFolder));
    const { reports, stopRetention } = startReported(new Session(through));
    const waiting = "SELECT FROM pg_locks WHERE NOT granted AND locktype = 'advisory'";
    await expect.poll(() => runSql(url, waiting)).not.toEqual([]);
    proxy.freeze();
    await stopRetention();
    expect(reports).toMatchObject([{ kind: "records-dropped", count: 20_000 }]);
    await locking.end();
  });

  test("pauses between slices while its store deletes plants", async () => {
    const url = await createRecords(20_200);
    const sql = `INSERT INTO plants VALUES (7);
       CREATE TABLE slices (begun timestamptz);
       CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         INSERT INTO slices VALUES (clock_timestamp());
         WHILE NOT pg_try_advisory_xact_lock(2) LOOP PERFORM pg_sleep(0.01); END LOOP;
         RETURN NULL;
       END $$;
       CREATE TRIGGER wait BEFORE DELETE ON deletions FOR EACH STATEMENT EXECUTE FUNCTION wait()`;
    await runSql(url, sql);
    const gate = await openClient(url, "SELECT pg_advisory_lock(2)");
    const store = await openPostgresStore({ url, deletionsKeptMs: 3_600_000 });
    const waiting = "SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE '%deletions%'";
    await expect.poll(() => runSql(url, waiting)).not.toEqual([]);
    const heldFromMs = performance.now();
    await expect(store.delete(7n, deleteCall())).resolves.toBe(true);
    await delay(100);
    const heldMs = performance.now() - heldFromMs;
    await gate.end();
    await expect.poll(() => countRecords(url)).toBe(61);
    await store.close();
    const [apart] = await runSql(
      url,
      `SELECT extract(epoch FROM lead(begun) OVER (ORDER BY begun) - begun)::float8 * 1000 AS ms FROM slices ORDER BY begun LIMIT 1`,
    );
    // A timer may be a millisecond early.
    expect(apart?.["ms"]).toBeGreaterThanOrEqual((1 + singleServer(storeSchema("public")).dropPause) * heldMs - 2);
  });

  test("stops when its store is closed", async () => {
    const url = await createRecords(200_000);
    // Each slice takes a second.
    const sql = `CREATE FUNCTION rest() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(1); RETURN NULL; END';
       CREATE TRIGGER rest BEFORE DELETE ON deletions FOR EACH STATEMENT EXECUTE FUNCTION rest()`;
    await runSql(url, sql);
    const store = await openPostgresStore({ url, deletionsKeptMs: 3_600_000 });
    const sessions = `SELECT FROM pg_stat_activity WHERE application_name = 'plantstore' AND query LIKE '%deletions%'`;
    await expect.poll(() => runSql(url, `${sessions} AND wait_event = 'PgSleep'`)).not.toEqual([]);
    await store.close();
    await expect.poll(() => runSql(url, sessions)).toEqual([]);
    // The running slice is dropped, and one or two of nine other slices if the test was late.
    expect(await countRecords(url)).toBeGreaterThan(100_000);
  });
});

/** Starts to drop records, and collects the reports. */
function startReported(session: Session) {
  const reports: Upkeep[] = [];
  const onUpkeep = (upkeep: Upkeep): void => void reports.push(upkeep);
  return { reports, stopRetention: startRetention(session, { keptMs: 3_600_000, tablesOn: onSingleServer, onUpkeep }) };
}

/** Starts to drop records that another transaction has locked. */
async function shortenLocked(url: string, through: string) {
  const locking = await openClient(url, "BEGIN; LOCK TABLE deletions IN EXCLUSIVE MODE");
  const { reports, stopRetention } = startReported(new Session(readServerUrl(through)));
  const waiting = "SELECT FROM pg_locks WHERE NOT granted AND relation = 'deletions'::regclass";
  await expect.poll(() => runSql(url, waiting)).not.toEqual([]);
  return { stopRetention, reports, waiting, [Symbol.asyncDispose]: () => locking.end() };
}

const countRecords = async (url: string) => Number((await runSql(url, "SELECT count(*) FROM deletions"))[0]?.["count"]);
