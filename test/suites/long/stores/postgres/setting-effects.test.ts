import { expect, test } from "vitest";
import { Differs } from "../../../../../protoport/testing/src/comparison.ts";
import { compare, type Environment } from "../../server/effects/comparison.ts";
import { runSql, startPostgresOfFile } from "../../../../support/plants/index.ts";
import type { ConfiguredServer } from "../../../../support/server/start-configured.ts";

// A store's settings, compared as in test/suites/long/server/setting-effects.test.ts, where the store is in SQLite.

const postgres = await startPostgresOfFile();

/** Returns how many records a server has dropped, or `undefined` before the first drop. */
const droppedBy = (server: ConfiguredServer): unknown =>
  server.lines().find(({ msg }) => msg === "old deletion records dropped")?.["count"];

test("the setting deletionsKeptHours has an effect on PostgreSQL", async () => {
  const withHours = async (hours: string): Promise<Environment> => {
    const url = await postgres.createPlants();
    const sql = `INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch)
       SELECT i, now() - i * interval '1 hour' + interval '1 minute', '', '', gen_random_uuid() FROM generate_series(1, 9) AS i`;
    await runSql(url, sql);
    return { DATABASE_URL: url, PLANTSTORE_DELETIONS_KEPT_HOURS: hours };
  };
  const comparison = compare(await withHours("5"), await withHours("3"), async (server) => {
    await expect.poll(() => droppedBy(server)).toBeDefined();
    return droppedBy(server);
  });
  await expect(comparison).resolves.toBeInstanceOf(Differs);
});
