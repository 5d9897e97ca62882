import { beforeAll } from "vitest";
import { shared } from "../../../protoport/testing/src/shared.ts";
import { migratePostgres, openPostgresDatabase } from "../../../src/stores/postgres/all-plants/plant-database.ts";
import { openPostgresStore } from "../../../src/stores/postgres/postgres-store.ts";
// oxfmt-ignore
import { describePlantDatabase, describePlantStore, lockPlants, type Protection, readPlants, readRecorded, runSql
} from "../../support/plants/index.ts";
import { addTriggerOn, type Trigger } from "./add-trigger.ts";
import { startCitus } from "./citus-cluster.ts";

const cluster = shared(() => startCitus());
beforeAll(async () => {
  // The coordinator sets the role's timeout on the workers, too, where deletions wait for locks.
  await runSql(cluster.coordinator.url, "ALTER ROLE tester SET lock_timeout = '100ms'");
});

async function createStore(plants: readonly bigint[] = []): Promise<string> {
  const url = await cluster.createSchema();
  await migratePostgres(url);
  if (plants.length > 0) await runSql(url, `INSERT INTO plants SELECT unnest('{${plants.join()}}'::bigint[])`);
  return url;
}

async function kill(): Promise<void> {
  const nodes = [cluster.coordinator, ...cluster.workers];
  await Promise.all(nodes.map((node) => node.kill()));
  await Promise.all(nodes.map((node) => node.start()));
}

const triggers: Readonly<Partial<Record<Protection, Omit<Trigger, "of">>>> = {
  "a trigger that refuses the deletion": { table: "plants", when: "DELETE", sql: "RAISE 'not this one'" },
  "a trigger that skips the deletion": { table: "plants", when: "DELETE", sql: "RETURN NULL" },
  "a trigger that skips the record": { table: "deletions", when: "INSERT", sql: "RETURN NULL" },
};

async function protect(url: string, way: Protection, ids: readonly bigint[]): Promise<void> {
  const trigger = triggers[way];
  if (trigger !== undefined) return await addTriggerOn(cluster, url, { ...trigger, of: ids });
  await runSql(url, "CREATE TABLE beds (plant bigint PRIMARY KEY)");
  await runSql(url, "SELECT create_distributed_table('beds', 'plant', colocate_with => 'plants')");
  await runSql(url, "ALTER TABLE beds ADD FOREIGN KEY (plant) REFERENCES plants (id)");
  await runSql(url, `INSERT INTO beds SELECT unnest('{${ids.join()}}'::bigint[])`);
}

describePlantStore(
  async (plants) => {
    const url = await createStore(plants);
    const store = await openPostgresStore({ url });
    return {
      store,
      plants: () => readPlants(url),
      reopen: (options) => openPostgresStore({ url, ...options }),
      database: {
        location: { kind: "postgres", url },
        queues: cluster.workers.length,
        kill,
        run: (sql) => runSql(url, sql),
        failDeletions: async () => void (await runSql(url, "ALTER TABLE deletions RENAME COLUMN subject TO author")),
        protect: (way, ids) => protect(url, way, ids),
        lock: (ids) => lockPlants(url, ids),
        recorded: () => readRecorded(url),
        // Citus refuses an expression that depends on the session's time zone.
        age: async (days) =>
          void (await runSql(
            url,
            `UPDATE deletions
             SET deleted_at = (deleted_at AT TIME ZONE 'UTC' - interval '${days} days') AT TIME ZONE 'UTC'`,
          )),
      },
      [Symbol.asyncDispose]: () => store.close(),
    };
  },
  { keyHoldsFor: "a plant" },
);

describePlantDatabase(async () => {
  const url = await createStore();
  return { store: await openPostgresStore({ url }), database: await openPostgresDatabase(url) };
});
