import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { migratePostgres, openPostgresDatabase } from "../../../src/plants/postgres/plant-database.ts";
import { openPostgresStore } from "../../../src/plants/postgres/store.ts";
import { describePlantDatabase } from "../../support/describe-plant-database.ts";
import { configOf, type PostgresServer, runSql, startPostgres } from "../../support/postgres-server.ts";

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server[Symbol.asyncDispose]());

describePlantDatabase(async () => {
  const url = await server.createSchema();
  await migratePostgres(url);
  const store = await openPostgresStore({ url });
  const database = await openPostgresDatabase(url);
  return {
    store,
    database,
    [Symbol.asyncDispose]: async () => {
      await database[Symbol.asyncDispose]();
      await store.close();
    },
  };
});

describe("importing into PostgreSQL", () => {
  test("does not bring back a plant whose deletion is under way when the import comes to it", async () => {
    const url = await server.createSchema();
    await migratePostgres(url);
    await runSql(url, "INSERT INTO plants VALUES (1), (2)");
    const deleting = new Client(configOf(url));
    await deleting.connect();
    await deleting.query("BEGIN");
    await deleting.query("DELETE FROM plants WHERE id = 1");
    await deleting.query(
      "INSERT INTO deletions (plant_id, subject, request_id, batch) VALUES (1, '', '', gen_random_uuid())",
    );
    await using database = await openPostgresDatabase(url);
    await using running = await database.startImport();
    const counts = running.add([1n, 2n, 3n]);
    await expect
      .poll(() => runSql(url, "SELECT FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"))
      .not.toEqual([]);
    await deleting.query("COMMIT");
    await deleting.end();
    await expect(counts).resolves.toEqual({ added: 1, present: 1, deleted: 1 });
    expect(await runSql(url, "SELECT id FROM plants ORDER BY id")).toEqual([{ id: "2" }, { id: "3" }]);
  });

  test("stores a batch as a whole or not at all, goes on with the next one, and leaves no table behind", async () => {
    const url = await server.createSchema();
    await migratePostgres(url);
    await runSql(url, "ALTER TABLE plants ADD CONSTRAINT lucky CHECK (id <> 13)");
    await using database = await openPostgresDatabase(url);
    await using running = await database.startImport();
    await expect(running.add([12n, 13n, 14n])).rejects.toThrow(/violates check constraint "lucky"$/);
    expect(await runSql(url, "SELECT id FROM plants")).toEqual([]);
    await expect(running.add([12n, 14n])).resolves.toEqual({ added: 2, present: 0, deleted: 0 });
    expect(await runSql(url, "SELECT id FROM plants ORDER BY id")).toEqual([{ id: "12" }, { id: "14" }]);
    expect(
      await runSql(url, "SELECT relname FROM pg_class WHERE relname LIKE 'plantstore\\_%' AND relpersistence = 't'"),
    ).toEqual([]);
  });

  test("says so when its connection is cut with a batch on its way, stores nothing of it, and is run again", async () => {
    const url = await server.createSchema();
    await migratePostgres(url);
    await using database = await openPostgresDatabase(url);
    await using running = await database.startImport();
    const locking = new Client(configOf(url));
    await locking.connect();
    await locking.query("BEGIN; LOCK TABLE plants IN EXCLUSIVE MODE");
    const cut = expect(running.add([1n, 2n])).rejects.toThrow(/cannot work with/);
    const terminate =
      "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE NOT granted AND relation = 'plants'::regclass";
    await expect.poll(() => runSql(url, terminate)).not.toEqual([]);
    await cut;
    await locking.query("COMMIT");
    await locking.end();
    await expect(running.add([1n, 2n])).resolves.toEqual({ added: 2, present: 0, deleted: 0 });
  });

  test("says what the user may not do", async () => {
    const url = await server.createSchema();
    await migratePostgres(url);
    await runSql(url, "CREATE ROLE gardener LOGIN; REVOKE TEMPORARY ON DATABASE postgres FROM PUBLIC");
    const { searchParams } = new URL(url);
    const [schema] = (searchParams.get("options") ?? "").split("=").toReversed();
    await runSql(
      url,
      `GRANT USAGE ON SCHEMA ${schema} TO gardener; GRANT SELECT ON ALL TABLES IN SCHEMA ${schema} TO gardener`,
    );
    await using database = await openPostgresDatabase(url.replace("user=tester", "user=gardener"));
    await using running = await database.startImport();
    await expect(running.add([1n])).rejects.toThrow(/permission denied to create temporary tables/);
    await runSql(url, "GRANT TEMPORARY ON DATABASE postgres TO PUBLIC");
    await expect(running.add([1n])).rejects.toThrow(/permission denied for table plants$/);
  });

  test("takes the same ids from two imports beside each other, and adds each once", async () => {
    const url = await server.createSchema();
    await migratePostgres(url);
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
    const url = await server.createSchema();
    await migratePostgres(url);
    await using database = await openPostgresDatabase(url);
    await runSql(url, "DROP TABLE plants");
    await using running = await database.startImport();
    await expect(running.add([1n])).rejects.toThrow(/cannot work with \S+: relation "plants" does not exist$/);
  });
});

describe("the deletion record in PostgreSQL", () => {
  test("loses what is older than it is kept, and nothing else", async () => {
    const url = await server.createSchema();
    await migratePostgres(url);
    await runSql(
      url,
      `INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch)
       SELECT i, now() - i * interval '1 minute' + interval '30 seconds', '', '', gen_random_uuid() FROM generate_series(1, 2500) AS i`,
    );
    const store = await openPostgresStore({ url, deletionsKeptMs: 2 * 3_600_000 });
    await expect.poll(() => runSql(url, "SELECT max(plant_id) FROM deletions")).toEqual([{ max: "120" }]);
    expect(await runSql(url, "SELECT count(*) FROM deletions")).toEqual([{ count: "120" }]);
    await store.close();
  });
});
