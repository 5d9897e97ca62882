import { afterAll, afterEach } from "vitest";
import { openPostgresStore } from "../../../src/stores/postgres/postgres-store.ts";
import type { PlantStore } from "../../../src/service/plant-store.ts";
import type { DurableStoreOptions } from "../../../src/stores/contract/store-options.ts";
import type { ProtectionSql, StoreDatabase } from "./opened-store.ts";
import { failAttempts } from "./failing-attempts.ts";
import { openClient, type PostgresServer, runSql, startPostgres } from "./postgres-server.ts";

/** Starts a PostgreSQL for a file's tests, some of which stop it. */
export async function startPostgresOfFile(settings: readonly string[] = []): Promise<PostgresServer> {
  const server = await startPostgres(settings);
  afterEach(() => server.start());
  afterAll(() => server[Symbol.asyncDispose]());
  return server;
}

/** A store in a {@link PostgresServer} database. Dispose it with `await using`. */
export interface PostgresStore extends AsyncDisposable {
  readonly url: string;
  readonly store: PlantStore;
  /** Returns the plants' ids, in ascending order. */
  readonly plants: () => Promise<bigint[]>;
  readonly reopen: (options?: DurableStoreOptions) => Promise<PlantStore>;
  readonly database: StoreDatabase;
}

/** Creates a database with these plants, and opens its store. @param change - changes the URL */
export async function openStoreWith(
  server: PostgresServer,
  plants: readonly bigint[],
  change: (url: string) => string = (url) => url,
): Promise<PostgresStore> {
  const url = change(await server.createPlants(plants));
  const reopen: PostgresStore["reopen"] = (options) => openPostgresStore({ url, ...options });
  const store = await reopen();
  const kill = async (): Promise<void> => {
    await server.stop("kill");
    await server.start();
  };
  return {
    url,
    store,
    plants: () => readPlants(url),
    reopen,
    database: {
      location: { kind: "postgres", url },
      kill,
      run: (sql) => runSql(url, sql),
      // As many as are sent concurrently.
      failDeletions: () => failAttempts(url, "DELETE ON plants", ["42P01", "42P01"]),
      protect: (way, ids) => runSql(url, protectionSql[way](ids.join())),
      lock: (ids) => lockPlants(url, ids),
      recorded: () => readRecorded(url),
      age: (days) => ageRecords(url, days),
    },
    [Symbol.asyncDispose]: () => store.close(),
  };
}

/** Returns SQL for a trigger that runs a statement before rows change, if `condition` is true. */
const triggerSql = (event: "DELETE ON plants" | "INSERT ON deletions", condition: string, statement: string): string =>
  `CREATE FUNCTION protect() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${statement}; END $$;
   CREATE TRIGGER protect BEFORE ${event} FOR EACH ROW WHEN (${condition}) EXECUTE FUNCTION protect()`;

const protectionSql: ProtectionSql = {
  "a reference in another table": (ids) =>
    `CREATE TABLE beds (plant bigint REFERENCES plants (id)); INSERT INTO beds SELECT unnest('{${ids}}'::bigint[])`,
  "a trigger that refuses the deletion": (ids) =>
    triggerSql("DELETE ON plants", `OLD.id IN (${ids})`, "RAISE 'not this one'"),
  "a trigger that skips the deletion": (ids) => triggerSql("DELETE ON plants", `OLD.id IN (${ids})`, "RETURN NULL"),
  "a trigger that skips the record": (ids) =>
    triggerSql("INSERT ON deletions", `NEW.plant_id IN (${ids})`, "RETURN NULL"),
};

/** Locks plants in a transaction, and returns a function that commits it. */
export async function lockPlants(url: string, ids: readonly bigint[]): Promise<() => Promise<void>> {
  const sql = `BEGIN; SET LOCAL lock_timeout = 0; SELECT FROM plants WHERE id IN (${ids.join()}) FOR UPDATE`;
  const other = await openClient(url, sql);
  return async () => {
    await other.query("COMMIT");
    await other.end();
  };
}

export async function ageRecords(url: string, days: number): Promise<void> {
  await runSql(url, `UPDATE deletions SET deleted_at = deleted_at - interval '${days} days'`);
}

/** Returns the ids of a database's plants, in ascending order. */
export const readPlants = (url: string): Promise<bigint[]> => readIds(url, "SELECT id FROM plants ORDER BY id");

/** Returns the plants in a database's deletion records, in the order in which they were deleted. */
export const readRecorded = async (url: string): Promise<bigint[]> =>
  await readIds(url, "SELECT plant_id AS id FROM deletions ORDER BY deleted_at");

const readIds = async (url: string, sql: string): Promise<bigint[]> =>
  (await runSql(url, sql)).map(({ id }) => BigInt(String(id)));

/** Creates a database with plants from 1 on, and returns its URL. */
export const createPlantsUpTo = (server: PostgresServer, count: number): Promise<string> =>
  server.createPlants(Array.from({ length: count }, (_, i) => BigInt(i + 1)));

/** Returns SQL for a trigger that runs a statement before plants 5 and 12 are deleted. */
export const keepingSql = (statement: string): string => `CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN IF OLD.id IN (5, 12) THEN ${statement}; END IF; RETURN OLD; END $$;
          CREATE TRIGGER keep BEFORE DELETE ON plants FOR EACH ROW EXECUTE FUNCTION keep()`;
