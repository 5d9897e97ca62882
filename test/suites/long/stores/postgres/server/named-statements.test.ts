import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { closing } from "@protoport/testing/process";
import { openPostgresStore } from "../../../../../../src/stores/postgres/postgres-store.ts";
// oxfmt-ignore
import { deleteCall, refusalOf, runSql, startPostgresOfFile, startPostgresProxy
} from "../../../../../support/plants/index.ts";

const server = await startPostgresOfFile(["-c", "autovacuum=off"]);
const ids = Array.from({ length: 20 }, (_, i) => BigInt(i + 1));

/** A trigger that runs SQL on the connection that deletes plant 1, before the deletion. */
const atFirst = (statements: string): string => `
  CREATE FUNCTION at_first() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${statements} RETURN OLD; END $$;
  CREATE TRIGGER at_first BEFORE DELETE ON plants FOR EACH ROW WHEN (OLD.id = 1) EXECUTE FUNCTION at_first()`;

async function openWith(plants: readonly bigint[], change = "") {
  const url = await server.createPlants(plants);
  const sql = `CREATE TABLE uses (place serial, earlier bigint);
     CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
       INSERT INTO uses (earlier) SELECT sum(generic_plans) FROM pg_prepared_statements;
       RETURN NULL;
     END $$;
     CREATE TRIGGER note AFTER DELETE ON plants FOR EACH STATEMENT EXECUTE FUNCTION note(); ${change}`;
  await runSql(url, sql);
  const store = await openPostgresStore({ url });
  const deleteOne = (id: bigint): Promise<boolean> => store.delete(id, deleteCall());
  return {
    url,
    deleteOne,
    /** Returns whether the last deletion executed a prepared statement, after another on the same connection. */
    isPrepared: async () => {
      const [row] = await runSql(
        url,
        "SELECT earlier > lag(earlier) OVER (ORDER BY place) AS is_more FROM uses ORDER BY place DESC LIMIT 1",
      );
      return row?.["is_more"];
    },
    [Symbol.asyncDispose]: () => store.close(),
  };
}

describe("prepared statements for deletions", () => {
  test("are sent with their text once per connection, and then by name", async () => {
    const url = await server.createPlants(ids);
    let result = "";
    await using proxy = await startPostgresProxy(server.socketFolder, (client, upstream) => {
      client.on("data", (data) => (result += data.toString("latin1")));
      client.pipe(upstream).pipe(client);
    });
    await using store = closing(await openPostgresStore({ url: url.replace(server.socketFolder, proxy.socketFolder) }));
    for (const id of ids) await expect(store.delete(id, deleteCall())).resolves.toBe(true);
    expect(result.split("WITH free")).toHaveLength(2);
  });

  test("are sent with their text again after the server lost them", async () => {
    await using opened = await openWith(ids, atFirst("EXECUTE 'DEALLOCATE ALL';"));
    for (const id of ids) await expect(opened.deleteOne(id)).resolves.toBe(true);
    // A pooler would lose them again.
    expect(await opened.isPrepared()).toBe(null);
    expect(await runSql(opened.url, "SELECT count(*) FROM deletions")).toEqual([{ count: String(ids.length) }]);
  });

  test("are not confused with another client's statements with these names", async () => {
    const url = await server.createPlants(ids);
    const sql = `CREATE TABLE left_names (name text);
       ${atFirst("INSERT INTO left_names SELECT name FROM pg_prepared_statements;")}`;
    await runSql(url, sql);
    const before = await openPostgresStore({ url });
    await before.delete(1n, deleteCall());
    await before.close();
    // The trigger prepares another statement under the name that the next connection uses.
    await runSql(
      url,
      `INSERT INTO plants VALUES (1);
       CREATE OR REPLACE FUNCTION at_first() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE left_name text; BEGIN
         EXECUTE 'DEALLOCATE ALL';
         FOR left_name IN SELECT name FROM left_names LOOP
           EXECUTE format('PREPARE %I AS DELETE FROM plants RETURNING id', left_name);
         END LOOP;
         RETURN OLD; END $$`,
    );
    const store = await openPostgresStore({ url });
    await expect(store.delete(1n, deleteCall({ idempotencyKey: "other-statement" }))).resolves.toBe(true);
    await expect(store.delete(2n, deleteCall())).resolves.toBe(true);
    await store.close();
    expect(await runSql(url, "SELECT count(*) FROM plants")).toEqual([{ count: String(ids.length - 2) }]);
  });

  test("are used after a table change", async () => {
    await using opened = await openWith(ids);
    // Uses two connections concurrently, both of which get the error.
    const deleteTwo = (id: bigint): Promise<boolean[]> => Promise.all([id, id + 1n].map(opened.deleteOne));
    await expect(deleteTwo(1n)).resolves.toEqual([true, true]);
    await runSql(opened.url, "ALTER TABLE deletions ALTER plant_id TYPE numeric");
    await expect(deleteTwo(3n)).resolves.toEqual([true, true]);
    for (const id of [5n, 6n]) await opened.deleteOne(id);
    expect(await opened.isPrepared()).toBe(true);
  });

  test.each(["26000", "42P05"])("stay in use when a trigger raises SQLSTATE %s in a deletion", async (state) => {
    await using opened = await openWith(ids, atFirst(`RAISE 'no' USING ERRCODE = '${state}';`));
    expect((await refusalOf(opened.deleteOne(1n))).code).toBe(Code.Unavailable);
    for (const id of [2n, 3n]) await opened.deleteOne(id);
    expect(await opened.isPrepared()).toBe(true);
  });

  test("use the index even if they were planned on an empty table", async () => {
    const url = await server.createPlants(ids);
    await runSql(url, "DELETE FROM plants");
    await runSql(url, "VACUUM ANALYZE plants");
    const store = await openPostgresStore({ url });
    // After five executions, the server decides on a plan for all further executions.
    for (const id of ids) await store.delete(id, deleteCall());
    await runSql(url, "INSERT INTO plants SELECT generate_series(1, 50000)");
    for (const id of ids) await expect(store.delete(id, deleteCall())).resolves.toBe(true);
    await store.close();
    const read = `SELECT n_tup_del, seq_tup_read < 50000 AS by_index FROM pg_stat_user_tables
      WHERE relid = 'plants'::regclass`;
    // The first plants were deleted above.
    await expect.poll(() => runSql(url, read)).toEqual([{ n_tup_del: String(2 * ids.length), by_index: true }]);
  });
});
