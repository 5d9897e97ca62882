import { type OptionNames, refuseUnknownOptions, required } from "@plantstore/gateway/options";
import { checkDatabaseFile } from "./sqlite/database.ts";
import type { IdRange } from "./sqlite/migrate.ts";
import { migrateSqlite, openSqliteDatabase } from "./sqlite/plant-database.ts";
import { openSqliteStore } from "./sqlite/store.ts";
import type { PlantDatabase } from "./plant-database.ts";
import type { PlantStore } from "../service/index.ts";
import type { DurableStoreOptions } from "./durable-store-options.ts";

/** Where plants are stored persistently. */
export type PlantLocation = { readonly kind: "sqlite"; readonly path: string } | PostgresLocation;

/** A PostgreSQL database. */
export interface PostgresLocation {
  readonly kind: "postgres";
  /** The URL, as libpq parses it. It may contain a password. */
  readonly url: string;
  /** The file from which the URL was read, if any. */
  readonly urlFile?: string;
  /** Returns the current URL, if its user or password may change while a store is open. */
  readonly currentUrl?: () => string;
}

/** Options of {@link openPlantStore}. */
export interface StoreOptions extends DurableStoreOptions {
  /** The plants of an SQLite store that is created if it is missing. By default, a missing store is refused. */
  readonly plantsWhenCreated?: IdRange;
}

const locationNames: { readonly [Kind in PlantLocation["kind"]]: OptionNames<PlantLocation & { kind: Kind }> } = {
  sqlite: { kind: required, path: required },
  postgres: { kind: required, url: required, urlFile: true, currentUrl: true },
};

const storeOptionNames: OptionNames<StoreOptions> = {
  deletionsKeptMs: true,
  onBatch: true,
  onUpkeep: true,
  plantsWhenCreated: { first: true, last: true },
};

// Loaded on demand: a server on SQLite starts in two thirds of the time without it.
const loadPostgres = (): Promise<typeof import("./postgres/all-plants/plant-database.ts")> =>
  import("./postgres/all-plants/plant-database.ts");

/**
 * Opens the store of a server, which {@link migratePlants} has created before.
 *
 * @throws StoreOpenError with a message for the operator; TypeError for unknown options
 */
export async function openPlantStore(location: PlantLocation, options: StoreOptions = {}): Promise<PlantStore> {
  refuseUnknownOptions(location, locationNames[location.kind], "a location of openPlantStore");
  refuseUnknownOptions(options, storeOptionNames, "openPlantStore");
  if (location.kind === "sqlite") return await openSqliteStore({ file: location.path, ...options });
  const { openPostgresStore } = await import("./postgres/store.ts");
  return await openPostgresStore({ ...location, ...options });
}

/**
 * Opens an existing database for the commands of an operator.
 *
 * @throws StoreOpenError with a message for the operator
 */
export async function openPlantDatabase(location: PlantLocation): Promise<PlantDatabase> {
  if (location.kind === "sqlite") return await openSqliteDatabase(location.path);
  return await (await loadPostgres()).openPostgresDatabase(location.url);
}

/**
 * Checks that a server could open the store, without changing it.
 *
 * @throws StoreOpenError with a message for the operator
 */
export async function checkPlantStore(location: PlantLocation): Promise<void> {
  if (location.kind === "sqlite") return checkDatabaseFile(location.path);
  await (await loadPostgres()).checkPostgresDatabase(location.url);
}

/**
 * Creates the schema or migrates it to the version of this release, and returns the versions before and after. Does
 * nothing if the schema is current, or newer and usable by this release.
 *
 * @param onWaiting - called every few seconds with what a migration of PostgreSQL waits for
 * @throws StoreOpenError with a message for the operator, also when this release cannot use the schema
 */
export async function migratePlants(
  location: PlantLocation,
  onWaiting?: (what: string) => void,
): Promise<{ readonly from: number; readonly to: number }> {
  if (location.kind === "sqlite") return migrateSqlite(location.path);
  return await (await loadPostgres()).migratePostgres(location.url, onWaiting);
}
