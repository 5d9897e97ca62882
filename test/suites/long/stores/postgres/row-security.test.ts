import { Code } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { closing } from "@protoport/testing/process";
import {
  checkPostgresStore,
  openPostgresDatabase,
} from "../../../../../src/stores/postgres/all-plants/plant-database.ts";
import { openPostgresStore } from "../../../../../src/stores/postgres/postgres-store.ts";
import { deleteCall, runSql, startPostgresOfFile } from "../../../../support/plants/index.ts";

const server = await startPostgresOfFile();
/** The URL for the tables' owner, without further privileges. */
let url: string;
/** The URL for a superuser, from whom nothing is hidden. */
let admin: string;
beforeEach(async () => {
  admin = await server.createPlants([1n, 2n]);
  const sql = `CREATE ROLE gardener LOGIN; CREATE ROLE clerk LOGIN;
     DO $$ BEGIN EXECUTE format('GRANT ALL ON SCHEMA %I TO gardener, clerk', current_schema()); END $$;
     GRANT SELECT, INSERT, UPDATE, DELETE ON plants, deletions, plantstore_schema TO clerk;
     ALTER TABLE plants OWNER TO gardener; ALTER TABLE deletions OWNER TO gardener;
     ALTER TABLE plantstore_schema OWNER TO gardener`;
  await runSql(admin, sql);
  url = admin.replace("user=tester", "user=gardener");
});
afterEach(() => runSql(admin, "DROP OWNED BY gardener, clerk CASCADE; DROP ROLE gardener, clerk"));

/** Enables row security, which may hide rows. */
const hideSql = (table: string, force = ""): string =>
  `ALTER TABLE ${table} ENABLE ROW LEVEL SECURITY; CREATE POLICY mine ON ${table} USING (true); ${force}`;
const forceSql = (table: string): string => `ALTER TABLE ${table} FORCE ROW LEVEL SECURITY`;

describe("a store with row security", () => {
  test.each([
    { name: "plants from their owner (FORCE)", table: "plants", user: "gardener", force: true },
    { name: "deletions from their owner (FORCE)", table: "deletions", user: "gardener", force: true },
    { name: "plants from another role", table: "plants", user: "clerk", force: false },
    { name: "deletions from another role", table: "deletions", user: "clerk", force: false },
  ])("that hides $name is refused by each command", async ({ table, user, force }) => {
    await runSql(admin, hideSql(table, force ? forceSql(table) : ""));
    const of = admin.replace("user=tester", `user=${user}`);
    const message = new RegExp(`: row security may hide rows of the table ${table} from the user, `);
    await expect(openPostgresStore({ url: of })).rejects.toThrow(message);
    await expect(checkPostgresStore(of)).rejects.toThrow(message);
    await expect(openPostgresDatabase(of)).rejects.toThrow(message);
  });

  test.each([
    { name: "its owner connects without FORCE", user: "gardener", sql: "" },
    { name: "a role with BYPASSRLS connects", user: "clerk", sql: "ALTER ROLE clerk BYPASSRLS" },
    { name: "a superuser connects despite FORCE", user: "tester", sql: forceSql("plants") },
  ])("when $name, can be opened", async ({ user, sql }) => {
    await runSql(admin, `${hideSql("plants")}; ${sql}`);
    await using store = closing(await openPostgresStore({ url: admin.replace("user=tester", `user=${user}`) }));
    await expect(store.delete(2n, deleteCall())).resolves.toBe(true);
  });

  test("reports no plant as missing while row security hides plants", async () => {
    await using store = closing(await openPostgresStore({ url }));
    const sql = `ALTER TABLE plants ENABLE ROW LEVEL SECURITY; CREATE POLICY others ON plants USING (id > 1); ${forceSql("plants")}`;
    await runSql(admin, sql);
    await expect(store.delete(1n, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
    await runSql(admin, "ALTER TABLE plants DISABLE ROW LEVEL SECURITY");
    await expect.poll(() => store.problem).toBeUndefined();
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
  });

  test("becomes unready when row security is enabled", async () => {
    await using store = closing(await openPostgresStore({ url }));
    await runSql(admin, hideSql("plants", forceSql("plants")));
    await expect.poll(() => store.problem).toMatch(/row security may hide rows of the table plants/);
    await expect(store.delete(2n, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
    await runSql(admin, "ALTER TABLE plants DISABLE ROW LEVEL SECURITY");
    await expect.poll(() => store.problem).toBeUndefined();
    await expect(store.delete(2n, deleteCall())).resolves.toBe(true);
  });
});

describe("a table's rewrite rule", () => {
  const keepSql = "CREATE RULE keep AS ON DELETE TO plants DO INSTEAD NOTHING";

  test.each([
    { table: "plants", sql: keepSql },
    { table: "deletions", sql: "CREATE RULE keep AS ON INSERT TO deletions DO ALSO SELECT 1" },
    { table: "deletions", sql: "CREATE RULE keep AS ON UPDATE TO deletions DO INSTEAD NOTHING" },
  ])('"$sql" is refused by each command that writes', async ({ table, sql }) => {
    await runSql(admin, sql);
    const message = `: the rule keep replaces statements on the table ${table}: drop or disable the rule`;
    await expect(openPostgresStore({ url })).rejects.toThrow(message);
    await expect(checkPostgresStore(url)).rejects.toThrow(message);
    const database = await openPostgresDatabase(url);
    await expect(database.startImport()).rejects.toThrow(message);
    await database[Symbol.asyncDispose]();
  });

  test("is accepted if it is disabled", async () => {
    await runSql(admin, `${keepSql}; ALTER TABLE plants DISABLE RULE keep`);
    await using store = closing(await openPostgresStore({ url }));
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
  });
});
