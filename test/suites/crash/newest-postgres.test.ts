import { expect, onTestFinished, test, vi } from "vitest";
import { migratePostgres } from "../../../src/stores/postgres/all-plants/plant-database.ts";
import { readServerUrl } from "../../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../../src/stores/postgres/server/session.ts";
import { createSchemaOfVersion, laterSteps, latestVersion } from "../../support/plants/later-steps.ts";
import { embeddedBinaries } from "../../support/plants/postgres-binaries.ts";
import { runSql, startPostgres } from "../../support/plants/postgres-server.ts";

// What the server of the development dependencies has, and that of the system may be too old for.

test("a migration ignores the transaction_timeout of a role, which is for deletions", async () => {
  vi.stubEnv("PATH", `${embeddedBinaries()}:${process.env["PATH"]}`);
  onTestFinished(() => void vi.unstubAllEnvs());
  await using server = await startPostgres();
  const url = await createSchemaOfVersion(server, 2);
  await runSql(url, "CREATE ROLE hasty LOGIN SUPERUSER; ALTER ROLE hasty SET transaction_timeout = '1s'");
  const reader = new Session(readServerUrl(url));
  // The build of the index waits for readers of older snapshots.
  await reader.begin("ISOLATION LEVEL REPEATABLE READ; SELECT 1");
  const running = migratePostgres(url.replace("user=tester", "user=hasty"), undefined, laterSteps);
  const late = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'CREATE UNIQUE INDEX%'
    AND now() - query_start > '1500 ms' AND pid <> pg_backend_pid()`;
  const waiting = expect.poll(() => runSql(url, late)).toHaveLength(1);
  await Promise.race([waiting, running]);
  await reader.close();
  await expect(running).resolves.toEqual({ from: 2, to: latestVersion });
});
