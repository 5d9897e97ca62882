import { expect, onTestFinished, test, vi } from "vitest";
import { migratePostgres } from "../../../src/stores/postgres/all-plants/plant-database.ts";
import { openPostgresStore } from "../../../src/stores/postgres/postgres-store.ts";
import { readServerUrl } from "../../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../../src/stores/postgres/server/session.ts";
import { deleteCall } from "../../support/plants/delete-call.ts";
import { createSchemaOfVersion, laterSteps, latestVersion } from "../../support/plants/later-steps.ts";
import { embeddedBinaries } from "../../support/plants/postgres-binaries.ts";
import { type PostgresServer, runSql, startPostgres } from "../../support/plants/postgres-server.ts";

// Tests what the server in the development dependencies supports. The system's may be too old.

function startNewestPostgres(): Promise<PostgresServer> {
  vi.stubEnv("PATH", `${embeddedBinaries()}:${process.env["PATH"]}`);
  onTestFinished(() => void vi.unstubAllEnvs());
  return startPostgres();
}

test("a migration ignores the role's transaction_timeout", async () => {
  await using server = await startNewestPostgres();
  const url = await createSchemaOfVersion(server, 2);
  await runSql(url, "CREATE ROLE hasty LOGIN SUPERUSER; ALTER ROLE hasty SET transaction_timeout = '1s'");
  const reader = new Session(readServerUrl(url));
  // The index build waits for readers with older snapshots.
  await reader.begin("ISOLATION LEVEL REPEATABLE READ; SELECT 1");
  const running = migratePostgres(url.replace("user=tester", "user=hasty"), undefined, laterSteps);
  const late = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'CREATE UNIQUE INDEX%'
    AND now() - query_start > '1500 ms' AND pid <> pg_backend_pid()`;
  await Promise.race([expect.poll(() => runSql(url, late)).toHaveLength(1), running]);
  await reader.close();
  await expect(running).resolves.toEqual({ from: 2, to: latestVersion });
});

test("a deletion is retried when transaction_timeout cancels it in a trigger", async () => {
  await using server = await startNewestPostgres();
  const url = await server.createPlants([1n]);
  const sql = `CREATE ROLE hasty LOGIN SUPERUSER; ALTER ROLE hasty SET transaction_timeout = '300ms';
     CREATE SEQUENCE attempts;
     CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
       IF nextval('attempts') < 3 THEN PERFORM pg_sleep(60); END IF;
       RETURN OLD;
     END $$;
     CREATE TRIGGER linger BEFORE DELETE ON plants FOR EACH ROW EXECUTE FUNCTION linger()`;
  await runSql(url, sql);
  const store = await openPostgresStore({ url: url.replace("user=tester", "user=hasty") });
  await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
  expect(await runSql(url, "SELECT last_value FROM attempts")).toEqual([{ last_value: "3" }]);
  expect(store.problem).toBeUndefined();
  await store.close();
  expect(server.log.filter((line) => line.includes("transaction timeout"))).toHaveLength(2);
});
