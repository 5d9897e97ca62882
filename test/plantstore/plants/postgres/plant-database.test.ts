import { setImmediate as nextTurn, setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import {
  checkPostgresDatabase,
  migratePostgres,
  openPostgresDatabase,
} from "../../../../src/plantstore/plants/postgres/all-plants/plant-database.ts";
import { oneServer, oneServerByDay } from "../../../../src/plantstore/plants/postgres/delete/one-server.ts";
import { Retention } from "../../../../src/plantstore/plants/postgres/all-plants/retention.ts";
import { retentionIntervalMs } from "../../../../src/plantstore/plants/retention.ts";
import { readServerUrl } from "../../../../src/plantstore/plants/postgres/server/server-url.ts";
import { Session } from "../../../../src/plantstore/plants/postgres/server/session.ts";
import type { Upkeep } from "../../../../src/plantstore/plants/upkeep.ts";
import { openPostgresStore } from "../../../../src/plantstore/plants/postgres/store.ts";
import { collect } from "../../../support/collect.ts";
import { startCuttingProxy } from "../../../support/plants/cutting-proxy.ts";
import { startHangingProxy, startPostgresProxy } from "../../../support/plants/postgres-proxy.ts";
import { deleteCall } from "../../../support/plants/delete-call.ts";
import { describePlantDatabase } from "../../../support/plants/describe-plant-database.ts";
import {
  cancelWaitsForStandby,
  openClient,
  type PostgresServer,
  runSql,
  startPostgres,
  withoutStandby,
  withStrictIsolation,
} from "../../../support/plants/postgres-server.ts";
import { schemaOf } from "../../../support/plants/schema-of.ts";
import { storeSchema } from "../../../../src/plantstore/plants/postgres/schema/store-schema.ts";
import type { Placement } from "../../../../src/plantstore/plants/postgres/delete/placement.ts";

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server[Symbol.asyncDispose]());

describePlantDatabase(async () => {
  const url = await server.createPlants();
  return { store: await openPostgresStore({ url }), database: await openPostgresDatabase(url) };
});

describe("importing into PostgreSQL", () => {
  test.each([
    { ids: [1n, 2n, 3n], present: 1 },
    { ids: [1n, 3n], present: 0 },
  ])("does not bring back a plant whose deletion is under way when the import of $ids comes to it", async (row) => {
    const { ids, present } = row;
    const url = await server.createPlants([1n, 2n]);
    const deleting = await openClient(url, "BEGIN; DELETE FROM plants WHERE id = 1");
    await deleting.query(
      "INSERT INTO deletions (plant_id, subject, request_id, batch) VALUES (1, '', '', gen_random_uuid())",
    );
    await using database = await openPostgresDatabase(withStrictIsolation(url));
    await using running = await database.startImport();
    const counts = running.add(ids);
    await expect
      .poll(() => runSql(url, "SELECT FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"))
      .not.toEqual([]);
    await deleting.query("COMMIT");
    await deleting.end();
    await expect(counts).resolves.toEqual({ added: 1, present, deleted: 1 });
    expect(await runSql(url, "SELECT id FROM plants ORDER BY id")).toEqual([{ id: "2" }, { id: "3" }]);
  });

  test("copies each batch as a whole, until one has something that is there or was deleted", async () => {
    const url = await server.createPlants([2n]);
    await runSql(url, recordSql.replaceAll("1", "7"));
    let said = "";
    await using proxy = await startPostgresProxy(server.socketFolder, (client, upstream) => {
      client.on("data", (data) => (said += data.toString("latin1")));
      client.pipe(upstream).pipe(client);
    });
    await using database = await openPostgresDatabase(url.replace(server.socketFolder, proxy.socketFolder));
    await using running = await database.startImport();
    const ways = async (ids: readonly bigint[]): Promise<unknown> => {
      said = "";
      return [await running.add(ids), ...(said.match(/\bCOPY|INSERT/g) ?? [])];
    };
    const copied = ["COPY"];
    const tried = ["COPY", "INSERT"];
    expect(await ways([1n])).toEqual([{ added: 1, present: 0, deleted: 0 }, ...copied]);
    expect(await ways([4n, 2n, 3n])).toEqual([{ added: 2, present: 1, deleted: 0 }, ...tried]);
    expect(await ways([5n])).toEqual([{ added: 1, present: 0, deleted: 0 }, "INSERT"]);
    expect(await ways([6n])).toEqual([{ added: 1, present: 0, deleted: 0 }, ...copied]);
    expect(await ways([7n, 8n])).toEqual([{ added: 1, present: 0, deleted: 1 }, ...tried]);
    await using restoring = await database.startImport({ restore: true });
    said = "";
    await expect(restoring.add([7n])).resolves.toEqual({ added: 1, present: 0, deleted: 0 });
    expect(said).not.toContain("INSERT");
    expect(await runSql(url, "SELECT count(*) FROM plants")).toEqual([{ count: "8" }]);
  });

  test("counts no plant for added that a trigger drops silently", async () => {
    const url = await server.createPlants();
    await runSql(
      url,
      `CREATE FUNCTION drop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
       CREATE TRIGGER drop BEFORE INSERT ON plants FOR EACH ROW WHEN (NEW.id = 2) EXECUTE FUNCTION drop()`,
    );
    await using database = await openPostgresDatabase(url);
    await using running = await database.startImport();
    await expect(running.add([1n, 2n, 3n])).resolves.toEqual({ added: 2, present: 1, deleted: 0 });
    expect(await runSql(url, "SELECT id FROM plants ORDER BY id")).toEqual([{ id: "1" }, { id: "3" }]);
  });

  test("stores a batch as a whole or not at all, and goes on with the next one", async () => {
    const url = await server.createPlants();
    await runSql(url, "ALTER TABLE plants ADD CONSTRAINT lucky CHECK (id <> 13)");
    await using database = await openPostgresDatabase(url);
    await using running = await database.startImport();
    await expect(running.add([12n, 13n, 14n])).rejects.toThrow(/violates check constraint "lucky"$/);
    expect(await runSql(url, "SELECT id FROM plants")).toEqual([]);
    await expect(running.add([12n, 14n])).resolves.toEqual({ added: 2, present: 0, deleted: 0 });
    expect(await runSql(url, "SELECT id FROM plants ORDER BY id")).toEqual([{ id: "12" }, { id: "14" }]);
  });

  test("says so when its connection is cut with a batch on its way, stores nothing of it, and is run again", async () => {
    const url = await server.createPlants();
    await using database = await openPostgresDatabase(url);
    await using running = await database.startImport();
    const locking = await openClient(url, "BEGIN; LOCK TABLE plants IN EXCLUSIVE MODE");
    const cut = expect(running.add([1n, 2n])).rejects.toThrow(/cannot work with/);
    const terminate =
      "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE NOT granted AND relation = 'plants'::regclass";
    await expect.poll(() => runSql(url, terminate)).not.toEqual([]);
    await cut;
    await locking.query("COMMIT");
    await locking.end();
    await expect(running.add([1n, 2n])).resolves.toEqual({ added: 2, present: 0, deleted: 0 });
  });

  test.each([
    { how: "is lost", commitSql: "PERFORM pg_terminate_backend(pg_backend_pid())", restore: true },
    { how: "is lost", commitSql: "PERFORM pg_terminate_backend(pg_backend_pid())", restore: false },
    { how: "is refused", commitSql: "RAISE 'kept'", restore: true },
  ])("of a COMMIT that $how it says, with restore: $restore, what is in doubt", async ({ how, commitSql, restore }) => {
    const url = await server.createPlants();
    await runSql(
      url,
      `CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN ${commitSql}; RETURN NULL; END$$;
       CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON plants DEFERRABLE INITIALLY DEFERRED
       FOR EACH ROW EXECUTE FUNCTION at_commit()`,
    );
    await using database = await openPostgresDatabase(url);
    await using running = await database.startImport({ restore });
    const doubt = /: it is not known whether the last plants were restored; see which are there$/;
    const message = restore && how === "is lost" ? expect.stringMatching(doubt) : expect.not.stringMatching(doubt);
    await expect(running.add([1n])).rejects.toMatchObject({ message, cause: expect.any(Error) });
  });

  test("counts for its own no plant that another has added while its COMMIT was refused", async () => {
    const url = await server.createPlants();
    await runSql(
      url,
      `CREATE SEQUENCE commits;
       CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
         PERFORM pg_advisory_xact_lock(1);
         IF nextval('commits') = 1 THEN RAISE 'again' USING ERRCODE = '40001'; END IF;
         RETURN NULL;
       END$$;
       CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON plants DEFERRABLE INITIALLY DEFERRED
       FOR EACH ROW EXECUTE FUNCTION at_commit()`,
    );
    const holding = await openClient(url, "SELECT pg_advisory_lock(1)");
    await using database = await openPostgresDatabase(url);
    await using running = await database.startImport();
    const counts = running.add([1n]);
    const waiting = (type: string): Promise<unknown> =>
      runSql(url, `SELECT FROM pg_locks WHERE NOT granted AND locktype = '${type}'`);
    await expect.poll(() => waiting("advisory")).not.toEqual([]);
    // It waits for the first one, and is done as soon as that is undone.
    const other = runSql(url, "INSERT INTO plants VALUES (1)");
    await expect.poll(() => waiting("transactionid")).not.toEqual([]);
    await holding.end();
    await expect(counts).resolves.toEqual({ added: 0, present: 1, deleted: 0 });
    await other;
  });

  test("does not even try to add what was deleted before, which triggers and constraints would see", async () => {
    const url = await server.createPlants();
    await runSql(url, `ALTER TABLE plants ADD CONSTRAINT lucky CHECK (id <> 1); ${recordSql}`);
    await using database = await openPostgresDatabase(url);
    await using running = await database.startImport();
    await expect(running.add([1n, 2n])).resolves.toEqual({ added: 1, present: 0, deleted: 1 });
  });

  test("adds plants in the order of their ids, so that two imports do not deadlock", async () => {
    const url = await server.createPlants();
    await runSql(
      url,
      `CREATE TABLE added (nth serial, id bigint);
       CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
         INSERT INTO added (id) VALUES (NEW.id); RETURN NEW;
       END$$;
       CREATE TRIGGER note BEFORE INSERT ON plants FOR EACH ROW EXECUTE FUNCTION note()`,
    );
    await using database = await openPostgresDatabase(url);
    await using running = await database.startImport();
    await running.add([3n, -1n, 10n, 2n]);
    const ids = (await runSql(url, "SELECT id FROM added ORDER BY nth")).map(({ id }) => id);
    expect(ids).toEqual(["-1", "2", "3", "10"]);
  });

  test("does not pass for restored what its synchronous standbys do not have", async () => {
    const url = await server.createPlants();
    await withoutStandby(url, async () => {
      await expect
        .poll(() => runSql(url, "SHOW synchronous_standby_names"))
        .toEqual([{ synchronous_standby_names: "nobody" }]);
      await using database = await openPostgresDatabase(url);
      await using running = await database.startImport({ restore: true });
      const rejection = expect(running.add([1n])).rejects.toThrow(/standbys: it is not known whether the last plants/);
      await expect.poll(() => cancelWaitsForStandby(url)).not.toEqual([]);
      await rejection;
    });
  });

  test("says what the user may not do, and needs no table but those of the store", async () => {
    const url = await server.createPlants();
    await runSql(url, "CREATE ROLE gardener LOGIN; REVOKE TEMPORARY ON DATABASE postgres FROM PUBLIC");
    const { searchParams } = new URL(url);
    const [schema] = (searchParams.get("options") ?? "").split("=").toReversed();
    await runSql(
      url,
      `GRANT USAGE ON SCHEMA ${schema} TO gardener; GRANT SELECT ON ALL TABLES IN SCHEMA ${schema} TO gardener`,
    );
    await using database = await openPostgresDatabase(url.replace("user=tester", "user=gardener"));
    await using running = await database.startImport();
    await expect(running.add([1n])).rejects.toThrow(/permission denied for table plants$/);
    await runSql(url, "GRANT INSERT ON plants TO gardener");
    await expect(running.add([1n])).resolves.toEqual({ added: 1, present: 0, deleted: 0 });
    await runSql(url, "GRANT TEMPORARY ON DATABASE postgres TO PUBLIC");
  });

  test("takes the same ids from two imports beside each other, and adds each once", async () => {
    const url = await server.createPlants();
    await using database = await openPostgresDatabase(url);
    const ids = Array.from({ length: 4_000 }, (_, i) => BigInt(i));
    const importAll = async (lines: readonly bigint[]): Promise<number> => {
      await using running = await database.startImport();
      return (await running.add(lines)).added;
    };
    const [first, second] = await Promise.all([importAll(ids), importAll(ids.toReversed())]);
    expect((first ?? 0) + (second ?? 0)).toBe(ids.length);
    expect(await runSql(url, "SELECT count(*) FROM plants")).toEqual([{ count: "4000" }]);
  });

  test("names the server and what is wrong when it goes away", async () => {
    const url = await server.createPlants();
    await using database = await openPostgresDatabase(url);
    await runSql(url, "DROP TABLE plants");
    await using running = await database.startImport();
    await expect(running.add([1n])).rejects.toMatchObject({
      message: expect.stringMatching(/cannot work with \S+: relation "plants_\d+\.plants" does not exist$/),
      cause: { code: "42P01" },
    });
  });
});

test("an operator's view of PostgreSQL leaves no connection behind, also where its reader stops", async () => {
  const url = `${await server.createSchema()}&application_name=operator`;
  await migratePostgres(url);
  {
    await using database = await openPostgresDatabase(url);
    {
      await using running = await database.startImport();
      await running.add(Array.from({ length: 10_001 }, (_, i) => BigInt(i)));
    }
    for await (const ids of database.exportPlants()) {
      expect(ids).toHaveLength(10_000);
      break;
    }
    await collect(database.exportPlants());
    await collect(database.listDeletions());
  }
  const sessions = "SELECT query FROM pg_stat_activity WHERE application_name = 'operator'";
  await expect.poll(() => runSql(url, sessions)).toEqual([]);
});

test("a database is checked once the connection for that is closed", async () => {
  const url = await server.createPlants();
  let connections = 0;
  await using proxy = await startPostgresProxy(server.socketFolder, (client, upstream) => {
    connections++;
    client.on("close", () => connections--);
    client.pipe(upstream).pipe(client);
  });
  let left: number | undefined;
  // On a machine that has stalled, it was cut off: then once more.
  for (let rounds = 0; left !== 0 && rounds < 5; rounds++) {
    await checkPostgresDatabase(url.replace(server.socketFolder, proxy.socketFolder));
    left = connections;
  }
  expect(left).toBe(0);
});

test("a database without a plant store in it is not opened", async () => {
  const url = await server.createSchema();
  await expect(openPostgresDatabase(url)).rejects.toThrow(/: there is no plant store in it yet: /);
});

describe("the deletion record in PostgreSQL", () => {
  /** A database with this many records, one a minute, the youngest half a minute old. */
  async function createRecords(count: number): Promise<string> {
    const url = await server.createPlants();
    await runSql(
      url,
      `INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch)
       SELECT i, now() - i * interval '1 minute' + interval '30 seconds', '', '', gen_random_uuid() FROM generate_series(1, ${count}) AS i`,
    );
    return url;
  }

  test("loses what is older than it is kept, and nothing else", async () => {
    const url = await createRecords(45_000);
    const reports: Upkeep[] = [];
    const onUpkeep = (upkeep: Upkeep): void => void reports.push(upkeep);
    const store = await openPostgresStore({ url, deletionsKeptMs: 2 * 3_600_000, onUpkeep });
    await expect.poll(() => runSql(url, "SELECT max(plant_id) FROM deletions")).toEqual([{ max: "120" }]);
    expect(await countRecords(url)).toBe(120);
    await store.close();
    expect(reports).toEqual([{ kind: "records-dropped", count: 44_880, lastedMs: expect.any(Number) }]);
  });

  test.each([
    { name: "one table", placement: oneServer, mayBeMore: true },
    { name: "divided by day", placement: oneServerByDay, mayBeMore: false },
  ])("is shortened from its old end, past what others keep locked, if it is $name", async (row) => {
    const { mayBeMore } = row;
    const url = await createRecords(1_500);
    const other = await openClient(url, "BEGIN; SELECT FROM deletions WHERE plant_id > 1490 FOR UPDATE");
    // As behind PgBouncer, it has no time-outs.
    const session = new Session(readServerUrl(url));
    const placement = row.placement(schemaOf(session));
    const { reachedUs: fromUs, ...slice } = await placement.dropOldRecords(session, 3_600_000, { max: 1_000 });
    expect(slice).toEqual({ count: 1_000, isMore: true });
    const left = await runSql(url, "SELECT count(*), max(plant_id) FILTER (WHERE plant_id <= 1490) FROM deletions");
    expect(left).toEqual([{ count: "500", max: "490" }]);
    await other.end();
    // The next slice goes on where this one has ended, and leaves to a later time what was locked.
    const next = await placement.dropOldRecords(session, 3_600_000, { max: 1_000, fromUs });
    expect(next).toMatchObject({ count: 430, isMore: mayBeMore });
    await session.close();
  });

  test("is shortened past what a trigger keeps of a single second", async () => {
    const url = await createRecords(100);
    await runSql(
      url,
      `INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch)
       SELECT -i, '2026-01-02T03:04:05Z'::timestamptz + i * interval '40 us', '', '', gen_random_uuid() FROM generate_series(1, 24000) AS i;
       CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
       CREATE TRIGGER keep BEFORE DELETE ON deletions FOR EACH ROW WHEN (OLD.plant_id < 0) EXECUTE FUNCTION keep()`,
    );
    const store = await openPostgresStore({ url, deletionsKeptMs: 3_600_000 });
    await expect.poll(() => countRecords(url)).toBe(24_060);
    await store.close();
  });

  test.each([
    // The first slice ends where the moment begins.
    { moment: "2026-01-02T03:04:05Z", slices: [0, 80, 80, 80, 10] },
    { moment: "1970-01-01T00:00:00Z", slices: [80, 80, 80, 10] },
  ])("is shortened slice by slice where it is of a single moment, $moment", async ({ moment, slices }) => {
    const url = await createRecords(250);
    await runSql(url, `UPDATE deletions SET deleted_at = '${moment}' WHERE plant_id > 50`);
    const session = new Session(readServerUrl(url));
    const counts: number[] = [];
    let fromUs: number | undefined;
    for (let isMore = true; isMore;) {
      const slice = await oneServerByDay(schemaOf(session)).dropOldRecords(session, 1, { max: 80, fromUs });
      counts.push(slice.count);
      ({ isMore, reachedUs: fromUs } = slice);
    }
    await session.close();
    expect(counts).toEqual(slices);
  });

  test("is shortened by processes at the same time, each by records of its own", async () => {
    const url = await createRecords(45_000);
    const dropAll = async (): Promise<number> => {
      const session = new Session(readServerUrl(url));
      let dropped = 0;
      let fromUs: number | undefined;
      for (let isMore = true; isMore;) {
        const slice = await oneServerByDay(schemaOf(session)).dropOldRecords(session, 3_600_000, { max: 500, fromUs });
        dropped += slice.count;
        ({ isMore, reachedUs: fromUs } = slice);
      }
      await session.close();
      return dropped;
    };
    const dropped = await Promise.all([dropAll(), dropAll(), dropAll()]);
    expect(dropped.reduce((sum, count) => sum + count)).toBe(44_940);
    expect(await countRecords(url)).toBe(60);
  });

  test("is shortened by another process when one hangs before its commit", async () => {
    const url = await createRecords(100);
    await using proxy = await startHangingProxy(server.socketFolder);
    const hanging = new Session(readServerUrl(url.replace(server.socketFolder, proxy.socketFolder)));
    const dropped = oneServerByDay(schemaOf(hanging)).dropOldRecords(hanging, 3_600_000, { max: 1_000 });
    dropped.catch(() => undefined);
    await proxy.hangs;
    const session = new Session(readServerUrl(url));
    const drop = async (): Promise<number> =>
      (await oneServerByDay(schemaOf(session)).dropOldRecords(session, 3_600_000, { max: 1_000 })).count;
    await expect.poll(drop).toBe(40);
    await expect(dropped).rejects.toThrow();
    await Promise.all([session.close(), hanging.close()]);
  });

  test("is shortened without reading the rest of it for each slice, which the server knows nothing about", async () => {
    const url = await createRecords(45_000);
    const reports: Upkeep[] = [];
    const onUpkeep = (upkeep: Upkeep): void => void reports.push(upkeep);
    const store = await openPostgresStore({ url, deletionsKeptMs: 2 * 3_600_000, onUpkeep });
    await expect.poll(() => reports).toMatchObject([{ count: 44_880 }]);
    await store.close();
    // A record is looked up twice, and its page is looked at once more when it is written and when it is dropped.
    const readSql = `
      SELECT seq_tup_read, (SELECT idx_tup_read < 91000 FROM pg_stat_user_indexes WHERE indexrelid = to_regclass('deletions_by_row_by_time')) AS twice,
        (SELECT heap_blks_hit < 100000 FROM pg_statio_user_tables AS io WHERE io.relid = records.relid) AS once
      FROM pg_stat_user_tables AS records WHERE relid = 'deletions_by_row'::regclass AND n_tup_del = 44880`;
    await expect.poll(() => runSql(url, readSql)).toEqual([{ seq_tup_read: "0", twice: true, once: true }]);
  });

  test("is shortened past whatever a trigger keeps, without a second look at each", async () => {
    const url = await createRecords(45_000);
    await runSql(
      url,
      `CREATE SEQUENCE looks;
       CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN PERFORM nextval('looks'); RETURN NULL; END $$;
       CREATE TRIGGER keep BEFORE DELETE ON deletions FOR EACH ROW WHEN (OLD.plant_id > 24990) EXECUTE FUNCTION keep()`,
    );
    const store = await openPostgresStore({ url, deletionsKeptMs: 3_600_000 });
    // Of those that are kept there is a slice and a bit.
    await expect.poll(() => countRecords(url)).toBe(20_070);
    await store.close();
    expect(await runSql(url, "SELECT last_value FROM looks")).toEqual([{ last_value: "20010" }]);
  });

  test("is listed from its old end, in whatever order it was written", async () => {
    await using database = await openPostgresDatabase(await createRecords(3));
    const listed = await collect(database.listDeletions());
    expect(listed.flat().map(({ plantId }) => plantId)).toEqual([3n, 2n, 1n]);
  });

  test("is listed from the very moment of a record on", async () => {
    const url = await createRecords(1);
    await runSql(url, "UPDATE deletions SET deleted_at = '2026-01-02T03:04:05.678Z'");
    await using database = await openPostgresDatabase(url);
    const listed = await collect(database.listDeletions({ since: new Date("2026-01-02T03:04:05.678Z") }));
    expect(listed.flat()).toHaveLength(1);
  });

  test("is not shortened any more once its keeper has stopped, which has the server end what is under way", async () => {
    const url = await createRecords(1);
    await using locked = await shortenLocked(url, url);
    await locked.retention.stop();
    await expect.poll(() => runSql(url, locked.waiting)).toEqual([]);
    expect(await countRecords(url)).toBe(1);
    expect(locked.reports).toEqual([]);
  });

  test("does not keep its keeper from stopping when the server has vanished without a word", async () => {
    const url = await createRecords(1);
    await using proxy = await startCuttingProxy(server.socketFolder);
    await using locked = await shortenLocked(url, url.replace(server.socketFolder, proxy.socketFolder));
    proxy.freeze();
    await locked.retention.stop();
  });

  test("is told to be shorter before its keeper has stopped, although the server has vanished meanwhile", async () => {
    const url = await createRecords(30_000);
    const locking = await openClient(url, "SELECT pg_advisory_lock(1)");
    await runSql(
      url,
      `CREATE SEQUENCE slices;
       CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         IF nextval('slices') > 1 THEN PERFORM pg_advisory_xact_lock(1); END IF;
         RETURN NULL;
       END $$;
       CREATE TRIGGER wait BEFORE DELETE ON deletions EXECUTE FUNCTION wait()`,
    );
    await using proxy = await startCuttingProxy(server.socketFolder);
    const through = readServerUrl(url.replace(server.socketFolder, proxy.socketFolder));
    const reports: Upkeep[] = [];
    const retention = new Retention(new Session(through), {
      keptMs: 3_600_000,
      placementOn: (own) => Promise.resolve(oneServer(schemaOf(own))),
      onUpkeep: (upkeep) => void reports.push(upkeep),
    });
    const waiting = "SELECT FROM pg_locks WHERE NOT granted AND locktype = 'advisory'";
    await expect.poll(() => runSql(url, waiting)).not.toEqual([]);
    proxy.freeze();
    await retention.stop();
    expect(reports).toMatchObject([{ kind: "records-dropped", count: 20_000 }]);
    await locking.end();
  });

  test.each([
    { name: "rests after a slice beside deletions, and is stopped at once then", hasDeleted: true, left: 25_000 },
    { name: "does not rest where nothing is deleted", hasDeleted: false, left: 60 },
  ])("is shortened by a keeper that $name", async ({ hasDeleted, left }) => {
    const url = await createRecords(45_000);
    const asked = Promise.withResolvers<void>();
    const reports: Upkeep[] = [];
    let slices = 0;
    const placementOn = (own: Session): Promise<Placement> => {
      const placement = oneServerByDay(schemaOf(own));
      return Promise.resolve({
        ...placement,
        dropRest: 1_000_000,
        dropOldRecords: (...slice) => {
          slices++;
          return placement.dropOldRecords(...slice);
        },
      });
    };
    const retention = new Retention(new Session(readServerUrl(url)), {
      keptMs: 3_600_000,
      placementOn,
      hasDeletedSince: () => {
        asked.resolve();
        return hasDeleted;
      },
      onUpkeep: (upkeep) => void reports.push(upkeep),
    });
    await asked.promise;
    await nextTurn();
    expect(slices).toBe(hasDeleted ? 1 : 2);
    if (!hasDeleted) await expect.poll(() => countRecords(url)).toBe(left);
    await retention.stop();
    expect(await countRecords(url)).toBe(left);
    expect(reports).toMatchObject([{ kind: "records-dropped", count: 45_000 - left }]);
  });

  test("is shortened by its store with rests when that deletes meanwhile", async () => {
    const url = await createRecords(20_200);
    await runSql(
      url,
      `INSERT INTO plants VALUES (7);
       CREATE TABLE slices (begun timestamptz);
       CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         INSERT INTO slices VALUES (clock_timestamp());
         WHILE NOT pg_try_advisory_xact_lock(2) LOOP PERFORM pg_sleep(0.01); END LOOP;
         RETURN NULL;
       END $$;
       CREATE TRIGGER wait BEFORE DELETE ON deletions FOR EACH STATEMENT EXECUTE FUNCTION wait()`,
    );
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
    expect(apart?.["ms"]).toBeGreaterThanOrEqual((1 + oneServerByDay(storeSchema("public")).dropRest) * heldMs - 2);
  });

  test("is not shortened any more once its store is closed", async () => {
    const url = await createRecords(200_000);
    // Each slice takes a second.
    await runSql(
      url,
      `CREATE FUNCTION rest() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(1); RETURN NULL; END';
       CREATE TRIGGER rest BEFORE DELETE ON deletions FOR EACH STATEMENT EXECUTE FUNCTION rest()`,
    );
    const store = await openPostgresStore({ url, deletionsKeptMs: 3_600_000 });
    const sessions = `SELECT FROM pg_stat_activity WHERE application_name = 'plantstore' AND query LIKE '%deletions%'`;
    await expect.poll(() => runSql(url, `${sessions} AND wait_event = 'PgSleep'`)).not.toEqual([]);
    await store.close();
    await expect.poll(() => runSql(url, sessions)).toEqual([]);
    // Those of the slice that was under way are gone, and of the nine others one or two where the test was late.
    expect(await countRecords(url)).toBeGreaterThan(100_000);
  });

  test("keeps no connection in between, and nobody from anything when it cannot be shortened", async () => {
    const url = await createRecords(1);
    const sessions = "SELECT FROM pg_stat_activity WHERE application_name = 'keeper'";
    await runSql(url, "ALTER TABLE deletions RENAME TO gone");
    const reports: Upkeep[] = [];
    const session = new Session(readServerUrl(`${url}&application_name=keeper`));
    const retention = new Retention(session, {
      keptMs: 3_600_000,
      placementOn: (own) => Promise.resolve(oneServer(schemaOf(own))),
      onUpkeep: (upkeep) => void reports.push(upkeep),
    });
    const problem = expect.stringMatching(/^relation "plants_\d+\.deletions" does not exist$/);
    await expect.poll(() => reports).toEqual([{ kind: "retention-failed", problem, lastedMs: expect.any(Number) }]);
    await expect.poll(() => runSql(url, sessions)).toEqual([]);
    await retention.stop();
  });

  test("is shortened again and again", async () => {
    const url = await createRecords(1);
    const reports: Upkeep[] = [];
    const session = new Session(readServerUrl(url));
    using intervals = vi.spyOn(globalThis, "setInterval");
    using cleared = vi.spyOn(globalThis, "clearInterval");
    const retention = new Retention(session, {
      keptMs: 1,
      placementOn: (own) => Promise.resolve(oneServer(schemaOf(own))),
      onUpkeep: (upkeep) => void reports.push(upkeep),
    });
    const [shorten, intervalMs] = intervals.mock.lastCall ?? [];
    const timer = intervals.mock.results.at(-1)?.value;
    expect(intervalMs).toBe(retentionIntervalMs);
    await expect.poll(() => reports).toHaveLength(1);
    await runSql(url, recordSql);
    shorten?.();
    await expect.poll(() => reports).toMatchObject([{ count: 1 }, { count: 1 }]);
    expect(await countRecords(url)).toBe(0);
    await retention.stop();
    // A timer that goes on would keep a closed store in memory.
    expect(cleared.mock.calls.some(([one]) => one === timer)).toBe(true);
  });

  test("tells what was dropped before it could not be shortened any more", async () => {
    const url = await createRecords(45_000);
    await runSql(
      url,
      `CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'kept'; END$$;
       CREATE TRIGGER keep BEFORE DELETE ON deletions FOR EACH ROW WHEN (OLD.plant_id = 1) EXECUTE FUNCTION keep()`,
    );
    const reports: Upkeep[] = [];
    await new Promise<void>((resolve) => {
      const onUpkeep = (upkeep: Upkeep): void => {
        reports.push(upkeep);
        if (upkeep.kind === "retention-failed") resolve(retention.stop());
      };
      const options = { keptMs: 1, placementOn: (own: Session) => Promise.resolve(oneServer(schemaOf(own))), onUpkeep };
      const retention = new Retention(new Session(readServerUrl(url)), options);
    });
    const lastedMs = expect.any(Number);
    expect(reports).toEqual([
      { kind: "records-dropped", count: 40_000, lastedMs },
      { kind: "retention-failed", problem: "kept", lastedMs },
    ]);
  });
});

const recordSql = `INSERT INTO deletions (plant_id, subject, request_id, batch) VALUES (1, '', '', gen_random_uuid())`;

/** Starts to shorten a record that somebody keeps locked. */
async function shortenLocked(url: string, through: string) {
  const locking = await openClient(url, "BEGIN; LOCK TABLE deletions IN EXCLUSIVE MODE");
  const reports: Upkeep[] = [];
  const retention = new Retention(new Session(readServerUrl(through)), {
    keptMs: 3_600_000,
    placementOn: (own) => Promise.resolve(oneServer(schemaOf(own))),
    onUpkeep: (upkeep) => void reports.push(upkeep),
  });
  const waiting = "SELECT FROM pg_locks WHERE NOT granted AND relation = 'deletions'::regclass";
  await expect.poll(() => runSql(url, waiting)).not.toEqual([]);
  return { retention, reports, waiting, [Symbol.asyncDispose]: () => locking.end() };
}

async function countRecords(url: string): Promise<number> {
  return Number((await runSql(url, "SELECT count(*) FROM deletions"))[0]?.["count"]);
}

test("a replica is read, and nothing is imported into it", async () => {
  const url = await server.createPlants();
  await runSql(
    url,
    `INSERT INTO plants VALUES (1), (2); INSERT INTO deletions (plant_id, subject, request_id, batch)
    VALUES (3, 'ann', 'r', gen_random_uuid())`,
  );
  await runSql(url, "CREATE ROLE reader LOGIN SUPERUSER; ALTER ROLE reader SET default_transaction_read_only = on");
  const replica = url.replace("user=tester", "user=reader");
  await using database = await openPostgresDatabase(replica);
  expect((await collect(database.exportPlants())).flat()).toEqual([1n, 2n]);
  expect((await collect(database.listDeletions())).flat()).toMatchObject([{ plantId: 3n, subject: "ann" }]);
  await expect(database.startImport()).rejects.toThrow(/^cannot use .*: the server is read-only$/);
  await expect(checkPostgresDatabase(replica)).rejects.toThrow(/: the server is read-only$/);
});

test("a user without the rights that deleting needs is found before a server starts", async () => {
  const url = await server.createPlants();
  const [row] = await runSql(url, "SELECT current_schema() AS name");
  await runSql(
    url,
    `CREATE ROLE watcher LOGIN; GRANT USAGE ON SCHEMA ${String(row?.["name"])} TO watcher;
    GRANT SELECT ON ALL TABLES IN SCHEMA ${String(row?.["name"])} TO watcher`,
  );
  const refused = checkPostgresDatabase(url.replace("user=tester", "user=watcher"));
  await expect(refused).rejects.toThrow(/: the user lacks UPDATE on plants, DELETE on plants, INSERT on deletions/);
});
