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
import type { MovableStore } from "./contract/movable-store.ts";
import type { Versions } from "./contract/schema-version.ts";
import { checkSqliteStore } from "./sqlite/check-store.ts";
import type { IdRange } from "./sqlite/migrate.ts";
import { openMovableSqlite } from "./sqlite/movable-store.ts";
import { migrateSqlite, openSqliteDatabase } from "./sqlite/plant-database.ts";
import { openSqliteStore } from "./sqlite/sqlite-store.ts";
import type { PlantDatabase } from "./contract/plant-database.ts";
import type { PlantStore } from "../service/index.ts";
import type { DurableStoreOptions } from "./contract/durable-store-options.ts";

export { StoreOpenError } from "./contract/store-open-error.ts";
export type { MovableStore, StoreCounts } from "./contract/movable-store.ts";
export type { ImportCounts, PlantDatabase } from "./contract/plant-database.ts";
export { importPlants } from "./records/import-plants.ts";
export { movePlants, reopenPlants } from "./records/move-plants.ts";
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

/** What a store is in a move. */
export type MoveRole = "source" | "target";

/** What a kind of store does at its location. The functions below describe the members. */
interface StoreKind<Location> {
  readonly names: OptionNames<Location>;
  openStore(location: Location, options: StoreOptions): Promise<PlantStore>;
  openDatabase(location: Location): Promise<PlantDatabase>;
  check(location: Location): Promise<readonly string[]>;
  migrate(location: Location, onWaiting?: (what: string) => void): Promise<Versions>;
  openMovable(location: Location, role: MoveRole): Promise<MovableStore>;
}

// Imports the PostgreSQL modules on demand. A server on SQLite then starts a third sooner.
const kinds: {
  readonly [Kind in PlantLocation["kind"]]: StoreKind<Extract<PlantLocation, { readonly kind: Kind }>>;
} = {
  sqlite: {
    names: { kind: required, path: required },
    openStore: ({ path: file }, options) => openSqliteStore({ file, ...options }),
    openDatabase: ({ path }) => openSqliteDatabase(path),
    check: async ({ path }) => checkSqliteStore(path),
    migrate: async ({ path }) => migrateSqlite(path),
    openMovable: async ({ path }) => openMovableSqlite(path),
  },
  postgres: {
    names: { kind: required, url: required, urlFile: true, currentUrl: true },
    openStore: async (location, options) =>
      (await import("./postgres/postgres-store.ts")).openPostgresStore({ ...location, ...options }),
    openDatabase: async ({ url }) => (await importPlantDatabase()).openPostgresDatabase(url),
    check: async ({ url }) => (await import("./postgres/all-plants/check-store.ts")).checkPostgresStore(url),
    migrate: async ({ url }, onWaiting) => (await importPlantDatabase()).migratePostgres(url, onWaiting),
    openMovable: async ({ url }, role) =>
      (await import("./postgres/all-plants/movable-store.ts")).openMovablePostgres(url, role === "target"),
  },
};

// A location's kind selects its own row, so the row accepts the location.
const kindOf = ({ kind }: PlantLocation): StoreKind<PlantLocation> => kinds[kind];

const importPlantDatabase = () => import("./postgres/all-plants/plant-database.ts");

const storeOptionNames: OptionNames<StoreOptions> = {
  deletionsKeptMs: true,
  onBatch: true,
  onUpkeep: true,
  plantsWhenCreated: { first: true, last: true },
};

/** Opens an existing store for a server. @throws StoreOpenError for the operator; TypeError for unknown options */
export async function openPlantStore(location: PlantLocation, options: StoreOptions = {}): Promise<PlantStore> {
  requireObject(location, "openPlantStore", "a location");
  requireName(kinds, location.kind, "kind of openPlantStore");
  refuseUnknownOptions(location, kindOf(location).names, "a location of openPlantStore");
  refuseUnknownOptions(options, storeOptionNames, "openPlantStore");
  return await kindOf(location).openStore(location, options);
}

/** Opens an existing database for an operator's commands. @throws StoreOpenError with a message for the operator */
export async function openPlantDatabase(location: PlantLocation): Promise<PlantDatabase> {
  return await kindOf(location).openDatabase(location);
}

/**
 * Checks whether a server could open the store and delete plants. Does not change the store.
 *
 * @returns warnings for the operator
 * @throws StoreOpenError with a message for the operator
 */
export async function checkPlantStore(location: PlantLocation): Promise<readonly string[]> {
  return await kindOf(location).check(location);
}

/**
 * Creates the schema or migrates it to this release's version, and returns the versions before and after. Does not
 * change a schema that is current, or a newer schema that this release can use.
 *
 * @param onWaiting - called every few seconds while a PostgreSQL migration waits, with the reason
 * @throws StoreOpenError with a message for the operator, for example if this release cannot use the schema
 */
export async function migratePlants(location: PlantLocation, onWaiting?: (what: string) => void): Promise<Versions> {
  return await kindOf(location).migrate(location, onWaiting);
}

/** Opens an existing store to move its plants, even while servers use it. @throws StoreOpenError for the operator */
export async function openMovableStore(location: PlantLocation, role: MoveRole): Promise<MovableStore> {
  return await kindOf(location).openMovable(location, role);
}
