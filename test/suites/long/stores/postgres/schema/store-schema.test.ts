import { beforeAll, describe, expect, test } from "vitest";
import { shared } from "../../../../../../protoport/testing/src/shared.ts";
import {
  migratePostgres,
  openPostgresDatabase,
} from "../../../../../../src/stores/postgres/all-plants/plant-database.ts";
import { openPostgresStore } from "../../../../../../src/stores/postgres/postgres-store.ts";
import { findSchema } from "../../../../../../src/stores/postgres/schema/store-schema.ts";
import { readServerUrl } from "../../../../../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../../../../../src/stores/postgres/server/session.ts";
import { TableLocation } from "../../../../../../src/stores/postgres/table-location.ts";
import { closing, collect } from "@protoport/testing/process";
// oxfmt-ignore
import { deleteCall, describePlantDatabase, describePlantStore, factsOfOwnDatabase, readPlants,
  runSql, startPostgres, startPostgresProxy } from "../../../../../support/plants/index.ts";
import { runCommand } from "../../../../../support/process/run-command.ts";

const server = shared(() => startPostgres());
beforeAll(async () => void (await runSql(await server.createSchema(), decoySql)));

/** Creates a schema with tables and functions named like a store's. Using these tables or functions fails. */
const decoySql = `
  CREATE SCHEMA decoy;
  CREATE VIEW decoy.plants AS SELECT 1::bigint AS id;
  CREATE VIEW decoy.deletions AS SELECT 1::bigint AS plant_id;
  DO $do$ DECLARE one record; BEGIN
    FOR one IN
      SELECT proname, pg_get_function_identity_arguments(oid) AS arguments, prorettype::regtype AS result FROM pg_proc
      WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind <> 'p'
    LOOP
      BEGIN
        EXECUTE format('CREATE FUNCTION decoy.%I(%s) RETURNS %s LANGUAGE plpgsql AS $$ BEGIN RAISE %L; END $$',
          one.proname, one.arguments, one.result, 'the decoy of ' || one.proname || ' was used');
      EXCEPTION WHEN OTHERS THEN
        -- What only the server itself can call or create.
      END;
    END LOOP;
  END $do$`;

/** Returns the URL with another `search_path`, separated by commas. */
const withSearchPath = (url: string, searchPath: string): string =>
  url.replace(/search_path%3D\w+/, `search_path%3D${encodeURIComponent(searchPath)}`);

const nameOf = (url: string): string => readServerUrl(url).settings.get("search_path") ?? "";

/** Creates a store whose tables are not found by unqualified names. */
async function createBehindDecoys(): Promise<{ readonly url: string; readonly through: string }> {
  const url = await server.createPlants();
  return { url, through: withSearchPath(url, `decoy,pg_catalog,${nameOf(url)}`) };
}

describe("a store behind other tables and functions in the search_path", () => {
  describePlantStore(
    async (ids) => {
      const { url, through } = await createBehindDecoys();
      await runSql(url, `INSERT INTO plants SELECT unnest('{${ids.join()}}'::bigint[])`);
      const store = await openPostgresStore({ url: through });
      const reopen = () => openPostgresStore({ url: through });
      return { store, plants: () => readPlants(url), reopen, [Symbol.asyncDispose]: () => store.close() };
    },
    { lacks: factsOfOwnDatabase },
  );

  describePlantDatabase(async () => {
    const { through } = await createBehindDecoys();
    return { store: await openPostgresStore({ url: through }), database: await openPostgresDatabase(through) };
  });

  test("gets the same tables and indexes from migrate", async () => {
    const [url, other] = [await server.createSchema(), await server.createSchema()];
    await migratePostgres(withSearchPath(url, `${nameOf(url)},decoy,pg_catalog`));
    await migratePostgres(other);
    const tables = `SELECT relname, relkind FROM pg_class WHERE relnamespace = current_schema()::regnamespace ORDER BY 1`;
    expect(await runSql(url, tables)).toEqual(await runSql(other, tables));
  });
});

test("every command works on a schema with an unusual name", async () => {
  const name = String.raw`We"ird \'schema' of Plants.deletions`;
  const base = await server.createSchema();
  await runSql(base, `CREATE SCHEMA "${name.replaceAll('"', '""')}"`);
  const url = withSearchPath(base, `"${name.replaceAll('"', '""')}"`.replaceAll(/[\\ ]/g, "\\$&"));
  await migratePostgres(url);
  await using database = await openPostgresDatabase(url);
  await using running = await database.startImport();
  await running.add([1n, 2n, 3n]);
  const store = await openPostgresStore({ url });
  const calls = [deleteCall(), deleteCall({ idempotencyKey: "a" }), deleteCall({ idempotencyKey: "a" })];
  for (const call of calls) await expect(store.delete(1n, call)).resolves.toBe(call === calls[0]);
  await expect(store.delete(2n, deleteCall({ idempotencyKey: "b" }))).resolves.toBe(true);
  await expect(store.delete(2n, deleteCall({ idempotencyKey: "b" }))).resolves.toBe(true);
  await store.close();
  expect(await collect(database.exportPlants())).toEqual([[3n]]);
  expect((await collect(database.listDeletions())).flat().map(({ plantId }) => plantId)).toEqual([1n, 2n]);
});

async function find(url: string, sql = ""): Promise<string> {
  await using session = closing(new Session(readServerUrl(url)));
  await session.run(sql);
  return (await findSchema(session)).name;
}

describe("a store's schema", () => {
  test("is the first one in the search_path that contains a store", async () => {
    const empty = await server.createSchema();
    const [store, other] = [await server.createPlants(), await server.createPlants()];
    const path = (...urls: readonly string[]): string => withSearchPath(empty, urls.map(nameOf).join());
    await expect(find(path(empty, store, other))).resolves.toBe(nameOf(store));
    await expect(find(path(other, store))).resolves.toBe(nameOf(other));
    await expect(find(withSearchPath(empty, `nowhere,${nameOf(empty)}`))).resolves.toBe(nameOf(empty));
    await expect(find(withSearchPath(empty, "nowhere"))).rejects.toThrow(/^search_path contains no schema/);
  });

  test("does not depend on another pooler client's settings and tables", async () => {
    const [url, other] = [await server.createPlants(), await server.createPlants()];
    const role = `found_${nameOf(url)}`;
    await runSql(url, `CREATE ROLE ${role} LOGIN SUPERUSER; ALTER ROLE ${role} SET search_path = ${nameOf(url)}`);
    const byRole = url.replace("user=tester", `user=${role}`).replace(/&options=.*/, "");
    await expect(find(byRole, `SET search_path = ${nameOf(other)}`)).resolves.toBe(nameOf(url));
    await expect(find(byRole, "CREATE TEMP TABLE plantstore_schema (version integer)")).resolves.toBe(nameOf(url));
  });

  test("stays the same while a server runs, for any search_path", async () => {
    const [url, other] = [await server.createPlants([1n]), await server.createPlants([1n])];
    const role = `moved_${nameOf(url)}`;
    await runSql(url, `CREATE ROLE ${role} LOGIN SUPERUSER; ALTER ROLE ${role} SET search_path = ${nameOf(url)}`);
    const byRole = url.replace("user=tester", `user=${role}`).replace(/&options=.*/, "");
    const store = await openPostgresStore({ url: byRole });
    const location = new TableLocation();
    const [first, second] = [new Session(readServerUrl(byRole)), new Session(readServerUrl(byRole))];
    const schema = await location.schemaOn(first);
    await runSql(url, `ALTER ROLE ${role} SET search_path = ${nameOf(other)}`);
    await expect(location.schemaOn(second)).resolves.toBe(schema);
    await Promise.all([first.close(), second.close()]);
    await runSql(url, `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = '${role}'`);
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
    await store.close();
    expect(await runSql(other, "SELECT id FROM plants")).toEqual([{ id: "1" }]);
  });
});

describe("settings in the options of the database URL", () => {
  /** Starts a pooler that replaces its clients' `options`, by default with spaces. */
  const startDropping = (replace = (options: string): string => " ".repeat(options.length)) =>
    startPostgresProxy(server.socketFolder, (client, upstream) => {
      client.once("data", (startup) => {
        upstream.write(Buffer.from(startup.toString("latin1").replace(/(?<=\0options\0)[^\0]*/, replace), "latin1"));
        client.pipe(upstream);
      });
      upstream.pipe(client);
    });

  const commands = ["check", "deletions", "export", "import", "migrate", "serve"];
  test.each(commands)("make %s fail if a pooler drops them", async (command) => {
    const url = await server.createPlants([1n]);
    await using pooler = await startDropping();
    const through = url.replace(server.socketFolder, pooler.socketFolder);
    const environment = { DATABASE_URL: through, PLANTSTORE_TOKENS: "a-token-of-a-test-0123456789", PORT: "0" };
    const { exitCode, err } = await runCommand([command], environment, "7\n");
    expect(exitCode).toBe(1);
    const words = "the options in the database URL set search_path, but the server did not get this setting";
    expect(err.join("\n")).toContain(words);
    expect(await runSql(url, "SELECT id FROM plants")).toEqual([{ id: "1" }]);
  });

  test.each([
    { options: "-c work_mem=5MB", name: "work_mem" },
    { options: "-cwork_mem=5MB", name: "work_mem" },
    { options: "--work-mem=5MB", name: "work_mem" },
    { options: "-c DateStyle=SQL,DMY", name: "datestyle" },
    { options: "-c log_connections=on", name: "log_connections" },
    { options: "-c plants.color=green", name: "plants.color" },
    { options: String.raw`-c search_path="$user",\ nowhere`, name: "search_path" },
    { options: "-c no_such_setting=1", name: "no_such_setting" },
    { options: "-c enable_seqscan=off", name: "enable_seqscan" },
    // Each session sets these settings itself, after the URL's options.
    { options: "-c client_min_messages=error", name: undefined },
    { options: "-c lock_timeout=5s", name: undefined },
    { options: "-c statement_timeout=9s", name: undefined },
    { options: "-e", name: undefined },
  ])("are checked when a pooler drops $options from the URL", async ({ options, name }) => {
    await using pooler = await startDropping();
    const [url] = (await server.createPlants()).replace(server.socketFolder, pooler.socketFolder).split("&options=");
    await using session = closing(new Session(readServerUrl(`${url}&options=${encodeURIComponent(options)}`)));
    const found = findSchema(session);
    if (name === undefined) await expect(found).resolves.toMatchObject({ name: "public" });
    else await expect(found).rejects.toThrow(`the options in the database URL set ${name}, but the server did not get`);
  });

  test.each(["deletions", "export", "import"])("and the role set no timeout for %s", async (command) => {
    const url = await server.createPlants([1n]);
    const role = `hasty_${nameOf(url)}`;
    await runSql(url, `CREATE ROLE ${role} LOGIN SUPERUSER; ALTER ROLE ${role} SET statement_timeout = '50ms'`);
    await using holder = closing(new Session(readServerUrl(url)));
    await holder.run("BEGIN; LOCK plants, deletions");
    const byRole = `${url.replace("user=tester", `user=${role}`)}%20-cstatement_timeout%3D50`;
    const running = runCommand([command], { DATABASE_URL: byRole }, "7\n");
    const longWaitSql = `SELECT FROM pg_stat_activity WHERE usename = '${role}' AND wait_event_type = 'Lock'
      AND query_start < clock_timestamp() - interval '100 ms'`;
    await expect.poll(() => runSql(url, longWaitSql)).toHaveLength(1);
    await holder.run("COMMIT");
    await expect(running).resolves.toMatchObject({ exitCode: 0 });
  });

  test("are refused if a pooler starts its connections with other values", async () => {
    await using pooler = await startDropping((options) => options.replace("work_mem=5MB", "work_mem=9MB"));
    const [url] = (await server.createPlants()).replace(server.socketFolder, pooler.socketFolder).split("&options=");
    await using session = closing(new Session(readServerUrl(`${url}&options=-cwork_mem%3D5MB`)));
    const refused = findSchema(session);
    await expect(refused).rejects.toThrow("the options in the database URL set work_mem, but the server did not get");
  });

  test("make an open store unhealthy once a pooler drops them", async () => {
    let drops = false;
    await using pooler = await startDropping((options) => (drops ? " ".repeat(options.length) : options));
    const url = (await server.createPlants([1n])).replace(server.socketFolder, pooler.socketFolder);
    await using store = closing(await openPostgresStore({ url: `${url}%20-cwork_mem%3D5MB` }));
    drops = true;
    for (const socket of pooler.sockets) socket.destroy();
    await expect.poll(() => store.problem).toMatch(/options in the database URL set \w+, but the server did not get/);
  });

  test.each([
    "-c work_mem=5120kB",
    "--work-mem=5120",
    "-c DateStyle=sql,dmy",
    "-c log_connections=true",
    "-c plants.color=green",
    String.raw`-c search_path="$user",\ public`,
  ])("are accepted when the server normalizes %s to another spelling", async (options) => {
    const [url] = (await server.createPlants()).split("&options=");
    await using session = closing(new Session(readServerUrl(`${url}&options=${encodeURIComponent(options)}`)));
    await expect(findSchema(session)).resolves.toMatchObject({ name: "public" });
  });

  test("are accepted if a pooler sets them on the connection", async () => {
    await using pooler = await startDropping();
    const [url] = (await server.createPlants()).replace(server.socketFolder, pooler.socketFolder).split("&options=");
    await using session = closing(new Session(readServerUrl(`${url}&options=-cIntervalStyle%3Dsql_standard`)));
    await session.run("SET IntervalStyle = sql_standard");
    await expect(findSchema(session)).resolves.toMatchObject({ name: "public" });
  });

  test("are accepted if the role has the values that a pooler drops", async () => {
    const url = await server.createPlants();
    const role = `same_${nameOf(url)}`;
    const sql = `CREATE ROLE ${role} LOGIN SUPERUSER; ALTER ROLE ${role} SET search_path = ${nameOf(url)};
       ALTER ROLE ${role} SET work_mem = '5MB'`;
    await runSql(url, sql);
    await using pooler = await startDropping();
    const through = `${url.replace("user=tester", `user=${role}`)}%20-cwork_mem%3D5120kB`;
    const pooled = through.replace(server.socketFolder, pooler.socketFolder);
    await using session = closing(new Session(readServerUrl(pooled)));
    // Another client's settings on this connection do not matter.
    await session.run("SET work_mem = '7MB'; SET search_path = public");
    await expect(findSchema(session)).resolves.toMatchObject({ name: nameOf(url) });
  });
});
