import { describe, expect, test } from "vitest";
import { mergePartitionsSql } from "../../../../../../src/stores/postgres/schema/merge-partitions.ts";
import { openPostgresStore } from "../../../../../../src/stores/postgres/postgres-store.ts";
import { recordsOf } from "../../../../../support/plants/days.ts";
import { deleteCall } from "../../../../../support/plants/delete-call.ts";
import { openClient, runSql } from "../../../../../support/plants/postgres-server.ts";
import { startPostgresOfFile } from "../../../../../support/plants/postgres-of-file.ts";

const server = await startPostgresOfFile();

describe("merging the record partitions into one table for Citus", () => {
  test("keeps all records, triggers and privileges", async () => {
    const url = await server.createPlants([1n, 2n]);
    const store = await openPostgresStore({ url });
    await store.delete(1n, deleteCall());
    await store.delete(2n, deleteCall({ idempotencyKey: "a" }));
    await store.close();
    await runSql(
      url,
      `GRANT SELECT ON deletions TO PUBLIC; CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
       CREATE TRIGGER told AFTER INSERT ON deletions FOR EACH ROW EXECUTE FUNCTION nothing()`,
    );
    await runSql(url, mergePartitionsSql);
    await runSql(url, mergePartitionsSql);
    const insert = "INSERT INTO deletions (plant_id, subject, request_id, batch) VALUES (3, '', '', gen_random_uuid())";
    await runSql(url, insert);
    expect(await recordsOf(url)).toEqual({ deletions: 3 });
    const [found] = await runSql(
      url,
      `SELECT relkind, relacl::text LIKE '%,=r/%' AS granted, (SELECT count(DISTINCT seq) FROM deletions) AS numbers,
         (SELECT string_agg(tgname, ',') FROM pg_trigger WHERE tgrelid = pg_class.oid) AS triggers,
         (SELECT count(*) FROM pg_class AS rest WHERE relnamespace = pg_class.relnamespace AND relname LIKE 'deletions\\_%'
          AND relkind <> 'i') AS rest
       FROM pg_class WHERE oid = 'deletions'::regclass`,
    );
    expect(found).toEqual({ relkind: "r", granted: true, numbers: "3", triggers: "told", rest: "1" });
  });

  test("waits for a running deletion and does not reuse the record's seq", async () => {
    const url = await server.createPlants();
    const insert = "INSERT INTO deletions (plant_id, subject, request_id, batch) VALUES (3, '', '', gen_random_uuid())";
    const deleting = await openClient(url, `BEGIN; ${insert}`);
    const gathering = runSql(url, mergePartitionsSql);
    const waiting = "SELECT FROM pg_locks WHERE relation = 'deletions'::regclass AND NOT granted";
    await expect.poll(() => runSql(url, waiting)).not.toEqual([]);
    await deleting.query(`${insert}; COMMIT`);
    await deleting.end();
    await gathering;
    await runSql(url, insert);
    expect(await runSql(url, "SELECT count(DISTINCT seq) FROM deletions")).toEqual([{ count: "3" }]);
  });
});
