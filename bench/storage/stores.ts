import { Pool } from "pg";
import { migratePlants, openMemoryStore, openPlantStore, openSqliteStore } from "../../src/stores/index.ts";
import type { PlantStore } from "../../src/service/index.ts";
import { openDatabase } from "../../src/stores/sqlite/database.ts";
import { prepareDeleteBatch } from "../../src/stores/sqlite/delete-batch.ts";
import { configOf, type PostgresServer, runSql } from "../../test/support/plants/postgres-server.ts";
import { fakeStore } from "../../test/support/plants/fake-store.ts";

/**
 * The location of a subject's store, which is an SQLite file or a PostgreSQL URL, and the number of plants in the
 * store.
 */
export interface StoreLocation {
  readonly file: string;
  readonly url: string;
  readonly plants: number;
  /** Whether each deletion has an idempotency key. */
  readonly hasKeys?: boolean;
}

/** A store's name in the comparison. */
export type StoreName = "memory" | "sqlite" | "sqlite single" | "postgres" | "postgres single";

/**
 * The stores that are compared. The stores named "single" run one transaction per request, as a service without a queue
 * does.
 */
export const stores: Readonly<Record<StoreName, (location: StoreLocation) => Promise<PlantStore>>> = {
  memory: ({ plants }) => Promise.resolve(openMemoryStore(new Set(idsTo(plants)))),
  sqlite: ({ file }) => openPlantStore({ kind: "sqlite", path: file }),
  "sqlite single": ({ file }) => Promise.resolve(openSingleSqlite(file)),
  postgres: ({ url }) => openPlantStore({ kind: "postgres", url }),
  "postgres single": ({ url }) => Promise.resolve(openSinglePostgres(url)),
};

/** Returns whether a string is a store's name. */
export function isStoreName(text: string): text is StoreName {
  return Object.hasOwn(stores, text);
}

/** Creates a store with the plants from 1 to `plants`. A `memory` store adds its plants when it is opened. */
export async function createStore(
  name: StoreName,
  plants: number,
  file: string,
  postgres: PostgresServer,
): Promise<StoreLocation> {
  if (name.startsWith("sqlite"))
    await (await openSqliteStore({ file, plantsWhenCreated: { first: 1n, last: BigInt(plants) } })).close();
  return { file, url: name.startsWith("postgres") ? await createPlants(postgres, plants) : "", plants };
}

/** Creates a store in a new PostgreSQL schema, with the plants from 1 to `last`, and returns its URL. */
export async function createPlants(postgres: PostgresServer, last: number): Promise<string> {
  const url = await postgres.createSchema();
  await migratePlants({ kind: "postgres", url });
  await runSql(url, `INSERT INTO plants SELECT generate_series(1, ${last})`);
  await runSql(url, "VACUUM ANALYZE plants");
  await runSql(url, "CHECKPOINT");
  return url;
}

function* idsTo(last: number): Generator<bigint> {
  for (let id = 1n; id <= last; id++) yield id;
}

function openSingleSqlite(file: string): PlantStore {
  const db = openDatabase({ file });
  const deleteBatch = prepareDeleteBatch(db);
  return fakeStore({
    delete: (id, { subject, requestId }) => {
      const { outcomes, problem } = deleteBatch([[id, subject, requestId, null]]);
      if (problem !== undefined) return Promise.reject(new Error(problem.text));
      return Promise.resolve(outcomes[0] === "deleted");
    },
    close: () => Promise.resolve(db.close()),
  });
}

// A typical pool size for a service.
const connections = 10;

function openSinglePostgres(url: string): PlantStore {
  const pool = new Pool({ ...configOf(url), max: connections });
  const text = `
    WITH gone AS (DELETE FROM plants WHERE id = $1 RETURNING id)
    INSERT INTO deletions (plant_id, subject, request_id, batch)
    SELECT id, $2, $3, gen_random_uuid() FROM gone`;
  return fakeStore({
    delete: async (id, { subject, requestId }) =>
      (await pool.query(text, [String(id), subject, requestId])).rowCount === 1,
    close: () => pool.end(),
  });
}
