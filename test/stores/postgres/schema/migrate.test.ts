import { describe, expect, onTestFinished, test } from "vitest";
import { StoreOpenError } from "../../../../src/stores/contract/store-options.ts";
// oxfmt-ignore
import { checkPostgresStore, migratePostgres, openPostgresDatabase
} from "../../../../src/stores/postgres/all-plants/plant-database.ts";
import { openPostgresStore } from "../../../../src/stores/postgres/postgres-store.ts";
import { ownSchema, tablesSql } from "../../../../src/stores/postgres/schema/store-schema.ts";
import { readServerUrl } from "../../../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../../../src/stores/postgres/server/session.ts";
// oxfmt-ignore
import { createSchemaOfVersion, deleteCall, laterSteps, latestVersion, runSql, startPostgresOfFile, startPostgresProxy,
  withStrictIsolation } from "../../../support/plants/index.ts";

const { version: newest } = ownSchema;
const server = await startPostgresOfFile();

/** Migrates to the version after {@link laterSteps}. */
const migrateLater = (url: string, onWaiting?: (what: string) => void, steps = laterSteps) =>
  migratePostgres(url, onWaiting, steps);

const indexesOf = async (url: string): Promise<unknown[]> =>
  await runSql(
    url,
    `SELECT relname, indisvalid, replace(pg_get_indexdef(oid), current_schema(), '') AS definition
     FROM pg_index JOIN pg_class ON oid = indexrelid WHERE pg_table_is_visible(oid)
     AND relnamespace = current_schema()::regnamespace ORDER BY 1`,
  );

const schemaOf = async (url: string): Promise<unknown[]> =>
  await runSql(
    url,
    `SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns
     WHERE table_schema = current_schema() ORDER BY 1, 2`,
  );

const recordSql = `INSERT INTO deletions (plant_id, subject, request_id, batch)
  VALUES (1, 'ann', 'r', '00000000-0000-0000-0000-000000000000')`;

describe("migrating a PostgreSQL database", () => {
  test.each([0, 1])("from version %d succeeds while a publication covers all tables", async (version) => {
    const url = await createSchemaOfVersion(server, version);
    await runSql(url, "CREATE PUBLICATION everything FOR ALL TABLES");
    onTestFinished(() => runSql(url, "DROP PUBLICATION everything").then(() => undefined));
    await expect(migrateLater(url)).resolves.toEqual({ from: version, to: latestVersion });
  });

  test("migrates a schema that is not the first in the search_path", async () => {
    const [url, empty] = [await createSchemaOfVersion(server, 1), await server.createSchema()];
    const first = readServerUrl(empty).settings.get("search_path");
    await migrateLater(url.replace("search_path%3D", `search_path%3D${first}%2C`));
    expect(await schemaOf(empty)).toEqual([]);
    const made = await createSchemaOfVersion(server, latestVersion);
    expect(await schemaOf(url)).toEqual(await schemaOf(made));
    expect(await indexesOf(url)).toEqual(await indexesOf(made));
  });

  test("creates this release's tables", async () => {
    const url = await server.createSchema();
    await expect(migratePostgres(url)).resolves.toEqual({ from: 0, to: newest });
    const made = await server.createPlants();
    expect(await schemaOf(url)).toEqual(await schemaOf(made));
    expect(await indexesOf(url)).toEqual(await indexesOf(made));
    await expect(migratePostgres(url)).resolves.toEqual({ from: newest, to: newest });
    await (await openPostgresStore({ url })).close();
  });

  test.each([0, 1, 2, 3])("from version %d runs the remaining steps", async (version) => {
    const url = await createSchemaOfVersion(server, version);
    if (version > 0) await runSql(url, "INSERT INTO plants VALUES (7)");
    await expect(migrateLater(url)).resolves.toEqual({ from: version, to: latestVersion });
    const made = await createSchemaOfVersion(server, latestVersion);
    expect(await schemaOf(url)).toEqual(await schemaOf(made));
    expect(await indexesOf(url)).toEqual(await indexesOf(made));
    expect(await runSql(url, "SELECT id FROM plants")).toEqual(version > 0 ? [{ id: "7" }] : []);
  });

  test.each([0, 1])("runs each step from version %d once in concurrent processes", async (version) => {
    const url = await createSchemaOfVersion(server, version);
    await Promise.all(Array.from({ length: 5 }, () => migrateLater(withStrictIsolation(url))));
    expect(await runSql(url, "SELECT version FROM plantstore_schema")).toEqual([{ version: latestVersion }]);
  });

  test.each([1, 2])("from version %d reports a wait for a lock, and allows deletions", async (version) => {
    const url = await createSchemaOfVersion(server, version);
    await runSql(url, recordSql);
    const reader = new Session(readServerUrl(url));
    await reader.begin("ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT plant_id FROM deletions");
    const reports: string[] = [];
    const lockTimeouts = (): number => server.log.filter((line) => line.includes("due to lock timeout")).length;
    const before = lockTimeouts();
    let triesUntilTold: number | undefined;
    let toldAtMs = Number.POSITIVE_INFINITY;
    const running = migrateLater(url, (what) => {
      reports.push(what);
      triesUntilTold ??= lockTimeouts() - before;
      toldAtMs = Math.min(toldAtMs, performance.now());
    });
    const waiting = "SELECT FROM pg_locks WHERE relation = 'deletions'::regclass AND NOT granted";
    await expect.poll(() => runSql(url, waiting)).not.toEqual([]);
    await runSql(url, `SET lock_timeout = '5s'; DELETE FROM plants; ${recordSql}`);
    await expect.poll(() => reports).toContain("a transaction that uses the table deletions");
    // One attempt is allowed, because the log line may arrive after the attempt.
    expect(triesUntilTold).toBeLessThanOrEqual(1);
    expect(await runSql(url, "SELECT version FROM plantstore_schema")).toEqual([{ version }]);
    await reader.close();
    await expect(running).resolves.toEqual({ from: version, to: latestVersion });
    // The next attempt came a second later; deletions continued meanwhile.
    expect(performance.now() - toldAtMs).toBeGreaterThan(900);
  });

  test("runs no step if another process changes the version first", async () => {
    const url = await createSchemaOfVersion(server, latestVersion - 1);
    await using proxy = await startPostgresProxy(server.socketFolder, (client, upstream) => {
      client.on("data", (data: Buffer) => {
        const isLock = data.includes("FOR UPDATE");
        const before = isLock ? runSql(url, "UPDATE plantstore_schema SET version = 99") : Promise.resolve();
        void before.then(() => upstream.write(data));
      });
      upstream.pipe(client);
    });
    const running = migrateLater(url.replace(server.socketFolder, proxy.socketFolder));
    await expect(running).rejects.toThrow(/its schema has version 99, .*: use a newer release$/);
    expect(await runSql(url, "SELECT version FROM plantstore_schema")).toEqual([{ version: 99 }]);
  });

  test("ignores the role's timeouts", async () => {
    const url = await createSchemaOfVersion(server, 1);
    await runSql(
      url,
      `CREATE ROLE hasty LOGIN SUPERUSER;
       ALTER ROLE hasty SET lock_timeout = '1ms'; ALTER ROLE hasty SET statement_timeout = '1ms';
       ALTER ROLE hasty SET idle_in_transaction_session_timeout = '1s'`,
    );
    const step = { sql: "SELECT pg_sleep(1.5)", table: "deletions" };
    const migrating = migrateLater(url.replace("user=tester", "user=hasty"), undefined, [step]);
    await expect(migrating).resolves.toEqual({ from: 1, to: 2 });
  });

  test("reports missing privileges without a retry", async () => {
    const url = await createSchemaOfVersion(server, 2);
    const [row] = await runSql(url, "SELECT current_schema() AS schema");
    const schema = String(row?.["schema"]);
    const sql = `CREATE ROLE guest LOGIN; GRANT USAGE ON SCHEMA ${schema} TO guest;
       GRANT ALL ON ALL TABLES IN SCHEMA ${schema} TO guest`;
    await runSql(url, sql);
    const refused = migrateLater(url.replace("user=tester", "user=guest"));
    await expect(refused).rejects.toThrow(/: must be owner of table deletions$/);
  });

  test("creates all tables or none", async () => {
    const url = await server.createSchema();
    await runSql(url, "CREATE VIEW deletions AS SELECT 1");
    const before = await schemaOf(url);
    await expect(migratePostgres(url)).rejects.toThrow(StoreOpenError);
    expect(await schemaOf(url)).toEqual(before);
  });

  test("repeats a step after its version could not be written", async () => {
    const url = await createSchemaOfVersion(server, 2);
    const sql = `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not today'; END $$;
       CREATE TRIGGER refuse BEFORE UPDATE ON plantstore_schema FOR EACH ROW EXECUTE FUNCTION refuse()`;
    await runSql(url, sql);
    await expect(migrateLater(url)).rejects.toThrow(/: not today$/);
    expect(await runSql(url, "SELECT version FROM plantstore_schema")).toEqual([{ version: 2 }]);
    await runSql(url, "DROP TRIGGER refuse ON plantstore_schema");
    await expect(migrateLater(url)).resolves.toEqual({ from: 2, to: latestVersion });
  });

  test.each(
    // oxfmt-ignore
    [
      ["an empty database", 0,
        /: it does not contain a plant store yet: only if this is a new store, run "plantstore migrate" to create it; otherwise correct the location, or, only if no server has it open, restore it$/],
      ["a schema two versions ahead", newest + 2,
        /: its schema has version 3, which requires a release of schema version 2 or newer, .*: use a newer release$/],
    ],
  )("other commands refuse %s with advice", async (_name, version, expected) => {
    const url = await createSchemaOfVersion(server, version);
    await expect(openPostgresStore({ url })).rejects.toThrow(expected);
    await expect(openPostgresDatabase(url)).rejects.toThrow(expected);
    await expect(checkPostgresStore(url)).rejects.toThrow(expected);
  });

  test("keeps the next release's compatible schema unchanged", async () => {
    const url = await server.createPlants([7n, 8n]);
    const running = await openPostgresStore({ url });
    const migrated = { from: newest, to: newest + 1 };
    await expect(migrateLater(url, undefined, laterSteps.slice(0, 1))).resolves.toEqual(migrated);
    const want = [{ version: 2, oldest_server: 1 }];
    expect(await runSql(url, "SELECT version, oldest_server FROM plantstore_schema")).toEqual(want);
    await expect(running.delete(7n, deleteCall())).resolves.toBe(true);
    await running.close();
    await checkPostgresStore(url);
    const restarted = await openPostgresStore({ url });
    await expect(restarted.delete(8n, deleteCall())).resolves.toBe(true);
    await restarted.close();
    const before = await schemaOf(url);
    await expect(migratePostgres(url)).resolves.toEqual({ from: newest + 1, to: newest + 1 });
    expect(await schemaOf(url)).toEqual(before);
    await using database = await openPostgresDatabase(url);
    await using importing = await database.startImport();
    await expect(importing.add(BigInt64Array.of(7n, 9n))).resolves.toEqual({ added: 1, deleted: 1, present: 0 });
  });

  test("records a breaking step, so that older servers refuse the schema", async () => {
    const url = await server.createPlants();
    const breaking = laterSteps.slice(0, 1).map((step) => ({ ...step, breaking: true as const }));
    await migrateLater(url, undefined, breaking);
    const want = [{ version: 2, oldest_server: 2 }];
    expect(await runSql(url, "SELECT version, oldest_server FROM plantstore_schema")).toEqual(want);
    const expected =
      /: its schema has version 2, which requires a release of schema version 2 or newer, .*: use a newer release$/;
    await expect(openPostgresStore({ url })).rejects.toThrow(expected);
    await expect(migratePostgres(url)).rejects.toThrow(expected);
  });

  test("refuses a schema without a version, and changes nothing", async () => {
    const url = await createSchemaOfVersion(server, newest);
    await runSql(url, "DELETE FROM plantstore_schema; INSERT INTO plants VALUES (7)");
    await expect(openPostgresDatabase(url)).rejects.toThrow(/: it does not contain a plant store yet: /);
    await expect(migratePostgres(url)).rejects.toThrow(/: relation "plantstore_schema" already exists$/);
    expect(await runSql(url, "SELECT id FROM plants")).toEqual([{ id: "7" }]);
  });

  test("refuses a schema two versions ahead without changing it", async () => {
    const url = await createSchemaOfVersion(server, newest + 2);
    await expect(migratePostgres(url)).rejects.toThrow(/: use a newer release$/);
    const want = [{ version: 3, oldest_server: 2 }];
    expect(await runSql(url, "SELECT version, oldest_server FROM plantstore_schema")).toEqual(want);
  });

  test("refuses a database with another encoding than UTF8, and creates nothing", async () => {
    const utf8 = await server.createSchema();
    await runSql(utf8, "CREATE DATABASE western ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0");
    const url = utf8.replace("/postgres?", "/western?").replace(/&options=.*/, "");
    const expected = /\/western: the encoding of the database must be UTF8, got LATIN1$/;
    await expect(migratePostgres(url)).rejects.toThrow(expected);
    expect(await schemaOf(`${url}&options=-csearch_path%3Dpublic`)).toEqual([]);
    await runSql(url, tablesSql);
    await expect(openPostgresStore({ url })).rejects.toThrow(expected);
  });

  test.each([
    ["127.0.0.1", /^cannot use 127\.0\.0\.1:1\/plants: connect ECONNREFUSED 127\.0\.0\.1:1$/],
    // A host name may have several addresses, each with a separate error.
    ["localhost", /^cannot use localhost:1\/plants: (connect ECONNREFUSED \S+; )?connect ECONNREFUSED 127\.0\.0\.1:1$/],
  ])("reports the unreachable server %s without the password", async (host, expected) => {
    const refused = migratePostgres(`postgres://ann:secret@${host}:1/plants`);
    await expect(refused).rejects.toThrow(StoreOpenError);
    await expect(refused).rejects.toThrow(expected);
    await expect(refused).rejects.toMatchObject({ cause: expect.any(Error) });
  });
});

describe("a database without durable commits", () => {
  test.each(["plants", "deletions"])("is refused when the table %s is unlogged", async (table) => {
    const url = await createSchemaOfVersion(server, newest);
    await runSql(url, `ALTER TABLE ${table} SET UNLOGGED`);
    await expectRefused(url, new RegExp(`: the table ${table} is unlogged, so commits would not be durable$`));
  });

  test("is refused when fsync is off", async () => {
    const url = await createSchemaOfVersion(server, newest);
    await runSql(url, "ALTER SYSTEM SET fsync = off");
    await runSql(url, "SELECT pg_reload_conf()");
    await expect.poll(() => runSql(url, "SHOW fsync")).toEqual([{ fsync: "off" }]);
    await expectRefused(url, /: fsync is off, so commits would not be durable$/);
    await runSql(url, "ALTER SYSTEM RESET fsync");
    await runSql(url, "SELECT pg_reload_conf()");
    await expect.poll(() => runSql(url, "SHOW fsync")).toEqual([{ fsync: "on" }]);
  });
});

async function expectRefused(url: string, expected: RegExp): Promise<void> {
  const openings = [
    () => openPostgresStore({ url }).then((store) => store.close()),
    () => checkPostgresStore(url),
    () =>
      openPostgresDatabase(url)
        .then((database) => database.startImport())
        .then((running) => running[Symbol.asyncDispose]()),
  ];
  for (const open of openings) await expect(open()).rejects.toThrow(expected);
}
