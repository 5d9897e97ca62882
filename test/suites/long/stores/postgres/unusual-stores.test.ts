import { expect, test } from "vitest";
// oxfmt-ignore
import { checkPostgresStore, migratePostgres, openPostgresDatabase
} from "../../../../../src/stores/postgres/all-plants/plant-database.ts";
import { openPostgresStore } from "../../../../../src/stores/postgres/postgres-store.ts";
import { deleteCall, runSql, startPostgresOfFile, startStandby } from "../../../../support/plants/index.ts";

const server = await startPostgresOfFile();

// oxfmt-ignore
const earlierBuilds = [
  { build: "no oldest release",
    sql: "ALTER TABLE plantstore_schema DROP COLUMN undone; UPDATE plantstore_schema SET version = 7" },
  { build: "daily partitions",
    sql: "DROP TABLE deletions; CREATE TABLE deletions (plant_id bigint, by_day boolean) PARTITION BY LIST (by_day)" },
];

test.each(
  earlierBuilds.flatMap((one) => [
    { ...one, name: "serving", open: (url: string) => openPostgresStore({ url }) },
    { ...one, name: "check", open: checkPostgresStore },
    { ...one, name: "export", open: openPostgresDatabase },
    { ...one, name: "migrate", open: (url: string) => migratePostgres(url) },
  ]),
)("$name refuses a store with $build from before release 0.1.0", async ({ sql, open }) => {
  const url = await server.createPlants([1n]);
  await runSql(url, sql);
  await expect(open(url)).rejects.toThrow(
    ': it was created by a plantstore before release 0.1.0, which no release can migrate: run "plantstore export" of ' +
      'that plantstore, create a new store with "plantstore migrate" of this release, and run "plantstore import"',
  );
  expect(await runSql(url, "SELECT id FROM plants")).toEqual([{ id: "1" }]);
});

test("fsync may be off on Neon, where commits wait for the storage", async () => {
  const url = await server.createPlants([1n]);
  await runSql(url, "ALTER SYSTEM SET fsync = off");
  await runSql(url, "SELECT pg_reload_conf()");
  await expect.poll(() => runSql(url, "SHOW fsync")).toEqual([{ fsync: "off" }]);
  await expect(checkPostgresStore(url)).rejects.toThrow("fsync is off");
  // A standby that is named like Neon's storage.
  await using standby = await startStandby(server, "walproposer");
  await runSql(url, "ALTER SYSTEM SET synchronous_standby_names = 'walproposer'");
  await runSql(url, "SELECT pg_reload_conf()");
  await expect.poll(() => checkPostgresStore(url).then(() => "accepted", String)).toBe("accepted");
  const store = await openPostgresStore({ url });
  await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
  await store.close();
  expect(standby.log.join()).toContain("started streaming WAL");
});
