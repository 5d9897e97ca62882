/**
 * Plant stores in memory, SQLite or PostgreSQL. Concurrent deletions share a commit. The stores do not depend on
 * protocols, credentials or the process.
 */
import {
  type OptionNames,
  refuseUnknownOptions,
  required,
  requireName,
  requireObject,
} from "@protoport/gateway/options";
import type { LockedStore, LockOptions } from "./contract/locked-store.ts";
import type { Versions } from "./contract/schema-version.ts";
import { checkSqliteStore } from "./sqlite/check-store.ts";
import { openLockedSqlite } from "./sqlite/locked-store.ts";
import type { IdRange } from "./sqlite/migrate.ts";
import { migrateSqlite, openSqliteDatabase } from "./sqlite/plant-database.ts";
import { openSqliteStore } from "./sqlite/sqlite-store.ts";
import type { PlantDatabase } from "./contract/plant-database.ts";
import type { PlantStore } from "../service/index.ts";
import type { DurableStoreOptions } from "./contract/durable-store-options.ts";

export { StoreOpenError } from "./contract/store-open-error.ts";
export type { StoreCounts } from "./contract/locked-store.ts";
export type { ImportCounts, PlantDatabase } from "./contract/plant-database.ts";
export { importPlants } from "./records/import-plants.ts";
export { movePlants } from "./records/move-plants.ts";
export { openMemoryStore } from "./queue/memory-store.ts";
export type { OnBatch } from "./contract/durable-store-options.ts";
export { parseId } from "./records/read-ids.ts";
export { backUp } from "./sqlite/backup.ts";
export { restore } from "./sqlite/restore.ts";
export type { OnUpkeep, Upkeep } from "./contract/upkeep.ts";
export type { IdRange } from "./sqlite/migrate.ts";
export { assertSameDatabase, readServerUrl } from "./postgres/server/server-url.ts";
export { openSqliteStore } from "./sqlite/sqlite-store.ts";

/** A store's location: an SQLite file or a PostgreSQL database. */
export type PlantLocation = { readonly kind: "sqlite"; readonly path: string } | PostgresLocation;

/** A PostgreSQL database. */
export interface PostgresLocation {
  readonly kind: "postgres";
  /** The connection URL in libpq's syntax. The URL may contain a password. */
  readonly url: string;
  /** The file that contains the URL. Undefined if the URL was not read from a file. */
  readonly urlFile?: string;
  /** Returns the current URL. Set if the user or password may change while a store is open. */
  readonly currentUrl?: () => string;
}

/** Options for {@link openPlantStore}. */
export interface StoreOptions extends DurableStoreOptions {
  /** Creates a missing SQLite store with these plants. By default, a missing store is an error. */
  readonly plantsWhenCreated?: IdRange;
}

const locationNames: {
  readonly [Kind in PlantLocation["kind"]]: OptionNames<Extract<PlantLocation, { readonly kind: Kind }>>;
} = {
  sqlite: { kind: required, path: required },
  postgres: { kind: required, url: required, urlFile: true, currentUrl: true },
};

const storeOptionNames: OptionNames<StoreOptions> = {
  deletionsKeptMs: true,
  onBatch: true,
  onUpkeep: true,
  plantsWhenCreated: { first: true, last: true },
};

/** Opens an existing store for a server. @throws StoreOpenError for the operator; TypeError for unknown options */
export async function openPlantStore(location: PlantLocation, options: StoreOptions = {}): Promise<PlantStore> {
  requireObject(location, "openPlantStore", "a location");
  requireName(locationNames, location.kind, "kind of openPlantStore");
  refuseUnknownOptions(location, locationNames[location.kind], "a location of openPlantStore");
  refuseUnknownOptions(options, storeOptionNames, "openPlantStore");
  if (location.kind === "sqlite") return await openSqliteStore({ file: location.path, ...options });
  // Imports the PostgreSQL modules on demand. A server on SQLite then starts a third sooner.
  const { openPostgresStore } = await import("./postgres/postgres-store.ts");
  return await openPostgresStore({ ...location, ...options });
}

/** Opens an existing database for an operator's commands. @throws StoreOpenError with a message for the operator */
export async function openPlantDatabase(location: PlantLocation): Promise<PlantDatabase> {
  if (location.kind === "sqlite") return await openSqliteDatabase(location.path);
  const { openPostgresDatabase } = await import("./postgres/all-plants/plant-database.ts");
  return await openPostgresDatabase(location.url);
}

/**
 * Checks whether a server could open the store and delete plants. Does not change the store.
 *
 * @returns warnings for the operator
 * @throws StoreOpenError with a message for the operator
 */
export async function checkPlantStore(location: PlantLocation): Promise<readonly string[]> {
  if (location.kind === "sqlite") return checkSqliteStore(location.path);
  const { checkPostgresStore } = await import("./postgres/all-plants/check-store.ts");
  return await checkPostgresStore(location.url);
}

/**
 * Creates the schema or migrates it to this release's version, and returns the versions before and after. Does not
 * change a schema that is current, or a newer schema that this release can use.
 *
 * @param onWaiting - called every few seconds while a PostgreSQL migration waits, with the reason
 * @throws StoreOpenError with a message for the operator, for example if this release cannot use the schema
 */
export async function migratePlants(location: PlantLocation, onWaiting?: (what: string) => void): Promise<Versions> {
  if (location.kind === "sqlite") return migrateSqlite(location.path);
  const { migratePostgres } = await import("./postgres/all-plants/plant-database.ts");
  return await migratePostgres(location.url, onWaiting);
}

/** Opens and locks an existing store that no server uses, until disposed of. @throws StoreOpenError for the operator */
export async function openLockedStore(location: PlantLocation, options: LockOptions): Promise<LockedStore> {
  if (location.kind === "sqlite") return openLockedSqlite(location.path, options.refused);
  const { openLockedPostgres } = await import("./postgres/all-plants/locked-store.ts");
  return await openLockedPostgres(location.url, options);
}
