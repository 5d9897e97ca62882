import { describe, expect, test } from "vitest";
// oxfmt-ignore
import { checkPostgresStore, migratePostgres, openPostgresDatabase
} from "../../../../../../src/stores/postgres/all-plants/plant-database.ts";
import { collect } from "@protoport/testing/process";
// oxfmt-ignore
import { cancelWaitsForStandby, openClient, runSql, startPostgresOfFile, startPostgresProxy, withoutStandby,
  withStrictIsolation } from "../../../../../support/plants/index.ts";

const server = await startPostgresOfFile();
const recordSql = `INSERT INTO deletions (plant_id, subject, request_id, batch) VALUES (1, '', '', gen_random_uuid())`;

describe("importing into PostgreSQL", () => {
  test.each([
    { name: "present and new plants", ids: [1n, 2n, 3n], present: 1 },
    { name: "new plants", ids: [1n, 3n], present: 0 },
  ])("with $name does not restore a plant that another session is deleting", async (row) => {
    const { ids, present } = row;
    const url = await server.createPlants([1n, 2n]);
    const deleting = await openClient(url, "BEGIN; DELETE FROM plants WHERE id = 1");
    await deleting.query(recordSql);
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

  test("does not count a plant that a trigger silently drops", async () => {
    const url = await server.createPlants();
    const sql = `CREATE FUNCTION drop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
       CREATE TRIGGER drop BEFORE INSERT ON plants FOR EACH ROW WHEN (NEW.id = 2) EXECUTE FUNCTION drop()`;
    await runSql(url, sql);
    await using database = await openPostgresDatabase(url);
    await using running = await database.startImport();
    await expect(running.add([1n, 2n, 3n])).resolves.toEqual({ added: 2, present: 1, deleted: 0 });
    expect(await runSql(url, "SELECT id FROM plants ORDER BY id")).toEqual([{ id: "1" }, { id: "3" }]);
  });

  test.each([
    {
      name: "a constraint refuses an id",
      sql: "ALTER TABLE plants ADD CONSTRAINT lucky CHECK (id <> 13)",
      problem: /violates check constraint "lucky"$/,
    },
    {
      name: "a trigger reports a duplicate",
      sql: `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE unique_violation; END $$;
            CREATE TRIGGER fail BEFORE INSERT ON plants FOR EACH ROW WHEN (NEW.id = 13) EXECUTE FUNCTION fail()`,
      problem: /: unique_violation$/,
    },
  ])("stores nothing of a batch when $name, then continues", async ({ sql, problem }) => {
    const url = await server.createPlants();
    await runSql(url, sql);
    await using database = await openPostgresDatabase(url);
    await using running = await database.startImport();
    await expect(running.add([12n, 13n, 14n])).rejects.toThrow(problem);
    expect(await runSql(url, "SELECT id FROM plants")).toEqual([]);
    await expect(running.add([12n, 14n])).resolves.toEqual({ added: 2, present: 0, deleted: 0 });
    expect(await runSql(url, "SELECT id FROM plants ORDER BY id")).toEqual([{ id: "12" }, { id: "14" }]);
  });

  test("stores nothing when its connection is cut, and can be repeated", async () => {
    const url = await server.createPlants();
    await using database = await openPostgresDatabase(url);
    await using running = await database.startImport();
    const locking = await openClient(url, "BEGIN; LOCK TABLE plants IN EXCLUSIVE MODE");
    const cut = expect(running.add([1n, 2n])).rejects.toThrow(/cannot use/);
    const terminate =
      "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE NOT granted AND relation = 'plants'::regclass";
    await expect.poll(() => runSql(url, terminate)).not.toEqual([]);
    await cut;
    await locking.query("COMMIT");
    await locking.end();
    await expect(running.add([1n, 2n])).resolves.toEqual({ added: 2, present: 0, deleted: 0 });
  });

  test.each(
    // oxfmt-ignore
    [
      ["reports an unknown outcome when a COMMIT with restore is lost", "lost",
        "PERFORM pg_terminate_backend(pg_backend_pid())", true],
      ["reports only the cause when a COMMIT without restore is lost", "lost",
        "PERFORM pg_terminate_backend(pg_backend_pid())", false],
      ["reports only the cause when a COMMIT is refused", "refused", "RAISE 'kept'", true],
    ],
  )("%s", async (_name, how, commitSql, restore) => {
    const url = await server.createPlants();
    const sql = `CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN ${commitSql}; RETURN NULL; END$$;
       CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON plants DEFERRABLE INITIALLY DEFERRED
       FOR EACH ROW EXECUTE FUNCTION at_commit()`;
    await runSql(url, sql);
    await using database = await openPostgresDatabase(url);
    await using running = await database.startImport({ restore });
    const doubt = /: it is unknown whether the last batch was restored; check which of its plants exist$/;
    const message = restore && how === "lost" ? expect.stringMatching(doubt) : expect.not.stringMatching(doubt);
    await expect(running.add([1n])).rejects.toMatchObject({ message, cause: expect.any(Error) });
  });

  test("counts a plant as present if another import adds it first", async () => {
    const url = await server.createPlants();
    const sql = `CREATE SEQUENCE commits;
       CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
         PERFORM pg_advisory_xact_lock(1);
         IF nextval('commits') = 1 THEN RAISE 'again' USING ERRCODE = '40001'; END IF;
         RETURN NULL;
       END$$;
       CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON plants DEFERRABLE INITIALLY DEFERRED
       FOR EACH ROW EXECUTE FUNCTION at_commit()`;
    await runSql(url, sql);
    const holding = await openClient(url, "SELECT pg_advisory_lock(1)");
    await using database = await openPostgresDatabase(url);
    await using running = await database.startImport();
    const counts = running.add([1n]);
    const waiting = (type: string) => runSql(url, `SELECT FROM pg_locks WHERE NOT granted AND locktype = '${type}'`);
    await expect.poll(() => waiting("advisory")).not.toEqual([]);
    // This import waits for the first one, and continues as soon as the first one is rolled back.
    const other = runSql(url, "INSERT INTO plants VALUES (1)");
    await expect.poll(() => waiting("transactionid")).not.toEqual([]);
    await holding.end();
    await expect(counts).resolves.toEqual({ added: 0, present: 1, deleted: 0 });
    await other;
  });

  test("skips a deleted plant that a constraint would refuse", async () => {
    const url = await server.createPlants();
    await runSql(url, `ALTER TABLE plants ADD CONSTRAINT lucky CHECK (id <> 1); ${recordSql}`);
    await using database = await openPostgresDatabase(url);
    await using running = await database.startImport();
    await expect(running.add([1n, 2n])).resolves.toEqual({ added: 1, present: 0, deleted: 1 });
  });

  test("inserts plants ordered by id, so that two imports do not deadlock", async () => {
    const url = await server.createPlants();
    const sql = `CREATE TABLE added (nth serial, id bigint);
       CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
         INSERT INTO added (id) VALUES (NEW.id); RETURN NEW;
       END$$;
       CREATE TRIGGER note BEFORE INSERT ON plants FOR EACH ROW EXECUTE FUNCTION note()`;
    await runSql(url, sql);
    await using database = await openPostgresDatabase(url);
    await using running = await database.startImport();
    await running.add([3n, -1n, 10n, 2n]);
    const ids = (await runSql(url, "SELECT id FROM added ORDER BY nth")).map(({ id }) => id);
    expect(ids).toEqual(["-1", "2", "3", "10"]);
  });

  test("reports plants as restored only after the synchronous standbys have them", async () => {
    const url = await server.createPlants();
    await withoutStandby(url, async () => {
      const want = [{ synchronous_standby_names: "nobody" }];
      await expect.poll(() => runSql(url, "SHOW synchronous_standby_names")).toEqual(want);
      await using database = await openPostgresDatabase(url);
      await using running = await database.startImport({ restore: true });
      const rejection = expect(running.add([1n])).rejects.toThrow(/standbys: it is unknown whether the last batch/);
      await expect.poll(() => cancelWaitsForStandby(url)).not.toEqual([]);
      await rejection;
    });
  });

  test.each([{}, { restore: true }])(
    "with %j reports plants as present only after the standbys have them",
    async (options) => {
      // Plant 1 is from an import that failed, because its standby wait was cancelled.
      const url = await server.createPlants([1n]);
      await withoutStandby(url, async () => {
        await using database = await openPostgresDatabase(url);
        await using running = await database.startImport(options);
        const rejection = expect(running.add([1n])).rejects.toThrow(/not confirmed by its synchronous standbys/);
        await expect.poll(() => cancelWaitsForStandby(url)).not.toEqual([]);
        await rejection;
      });
    },
  );

  test("reports a missing privilege on its tables", async () => {
    const url = await server.createPlants();
    await runSql(url, "CREATE ROLE gardener LOGIN; REVOKE TEMPORARY ON DATABASE postgres FROM PUBLIC");
    const { searchParams } = new URL(url);
    const [schema] = (searchParams.get("options") ?? "").split("=").toReversed();
    const select = `GRANT SELECT ON ALL TABLES IN SCHEMA ${schema} TO gardener`;
    await runSql(url, `GRANT USAGE ON SCHEMA ${schema} TO gardener; ${select}`);
    await using database = await openPostgresDatabase(url.replace("user=tester", "user=gardener"));
    await using running = await database.startImport();
    await expect(running.add([1n])).rejects.toThrow(/permission denied for table plants$/);
    await runSql(url, "GRANT INSERT ON plants TO gardener");
    await expect(running.add([1n])).resolves.toEqual({ added: 1, present: 0, deleted: 0 });
    await runSql(url, "GRANT TEMPORARY ON DATABASE postgres TO PUBLIC");
  });

  test("adds each id once when two imports run concurrently", async () => {
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

  test("reports the server and the problem when the server is unavailable", async () => {
    const url = await server.createPlants();
    await using database = await openPostgresDatabase(url);
    await runSql(url, "DROP TABLE plants");
    await using running = await database.startImport();
    await expect(running.add([1n])).rejects.toMatchObject({
      message: expect.stringMatching(/cannot use \S+: relation "plants_\d+\.plants" does not exist$/),
      cause: { code: "42P01" },
    });
  });
});

test("a PostgreSQL reader that stops early closes its connection", async () => {
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

test("a database check closes its connection before it resolves", async () => {
  const url = await server.createPlants();
  let connections = 0;
  await using proxy = await startPostgresProxy(server.socketFolder, (client, upstream) => {
    connections++;
    client.on("close", () => connections--);
    client.pipe(upstream).pipe(client);
  });
  let remaining: number | undefined;
  // If the machine stalls, the check times out and is repeated.
  for (let rounds = 0; remaining !== 0 && rounds < 5; rounds++) {
    await checkPostgresStore(url.replace(server.socketFolder, proxy.socketFolder));
    remaining = connections;
  }
  expect(remaining).toBe(0);
});

test("a database without a plant store is refused", async () => {
  const url = await server.createSchema();
  await expect(openPostgresDatabase(url)).rejects.toThrow(/: it does not contain a plant store yet: /);
});

test("a replica supports exports, but not imports", async () => {
  const url = await server.createPlants();
  const sql = `INSERT INTO plants VALUES (1), (2); INSERT INTO deletions (plant_id, subject, request_id, batch)
    VALUES (3, 'ann', 'r', gen_random_uuid())`;
  await runSql(url, sql);
  await runSql(url, "CREATE ROLE reader LOGIN SUPERUSER; ALTER ROLE reader SET default_transaction_read_only = on");
  const replica = url.replace("user=tester", "user=reader");
  await using database = await openPostgresDatabase(replica);
  expect((await collect(database.exportPlants())).flat()).toEqual([1n, 2n]);
  expect((await collect(database.listDeletions())).flat()).toMatchObject([{ plantId: 3n, subject: "ann" }]);
  await expect(database.startImport()).rejects.toThrow(/^cannot use .*: the server is read-only: default_/);
  await expect(checkPostgresStore(replica)).rejects.toThrow(/: the server is read-only: default_/);
});

test("a database check fails for a user without the privileges for deletions", async () => {
  const url = await server.createPlants();
  const [row] = await runSql(url, "SELECT current_schema() AS name");
  const sql = `CREATE ROLE watcher LOGIN; GRANT USAGE ON SCHEMA ${String(row?.["name"])} TO watcher;
    GRANT SELECT ON ALL TABLES IN SCHEMA ${String(row?.["name"])} TO watcher`;
  await runSql(url, sql);
  await expect(checkPostgresStore(url.replace("user=tester", "user=watcher"))).rejects.toThrow(
    /: the user lacks privileges: UPDATE on plants, DELETE on plants, INSERT on deletions/,
  );
});
