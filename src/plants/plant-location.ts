import { openDatabase } from "./sqlite/database.ts";
import type { IdRange } from "./sqlite/migrate.ts";
import { openSqliteDatabase } from "./sqlite/plant-database.ts";
import { openSqliteStore } from "./sqlite/store.ts";
import type { PlantDatabase } from "./plant-database.ts";
import type { PlantStore } from "./plant-store.ts";

/** Where plants are kept, apart from a store that dies with its process. */
export type PlantLocation =
  | { readonly kind: "sqlite"; readonly path: string }
  /** The URL as libpq reads it. It may hold a password. */
  | { readonly kind: "postgres"; readonly url: string };

/** How to open a store, wherever it is. */
export interface StoreOptions {
  /** How long deletion records are kept, in milliseconds. Default 90 days, an hour at least. */
  readonly deletionsKeptMs?: number;
  /** Plants for an SQLite file that is created now. */
  readonly plantsWhenCreated?: IdRange;
}

/**
 * Opens the store of a server. An SQLite file is created and migrated; a PostgreSQL database must have been.
 *
 * @throws StoreOpenError with words for the operator
 */
export async function openPlantStore(location: PlantLocation, options: StoreOptions = {}): Promise<PlantStore> {
  if (location.kind === "sqlite") return await openSqliteStore({ file: location.path, ...options });
  // Loaded when it is wanted: a server on SQLite starts a third sooner without it.
  const { openPostgresStore } = await import("./postgres/store.ts");
  return await openPostgresStore({ url: location.url, ...options });
}

/**
 * Opens what is there for an operator's tools.
 *
 * @throws StoreOpenError with words for the operator
 */
export async function openPlantDatabase(location: PlantLocation): Promise<PlantDatabase> {
  if (location.kind === "sqlite") return await openSqliteDatabase(location.path);
  const { openPostgresDatabase } = await import("./postgres/plant-database.ts");
  return await openPostgresDatabase(location.url);
}

/**
 * Creates the schema or brings it to this release's version. Nothing happens where it has that already.
 *
 * @throws StoreOpenError with words for the operator, also when the schema is of a newer release
 */
export async function migratePlants(location: PlantLocation): Promise<void> {
  if (location.kind === "sqlite") return openDatabase({ file: location.path }).close();
  const { migratePostgres } = await import("./postgres/plant-database.ts");
  await migratePostgres(location.url);
}
