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
import { checkSqliteStore, openMovableSqlite, migrateSqlite, openSqliteDatabase } from "./sqlite/plant-database.ts";
import type { IdRange } from "./sqlite/migrate.ts";
import type { DatabaseOptions } from "./sqlite/database.ts";
import { openSqliteStore } from "./sqlite/sqlite-store.ts";
import { openMemoryStore } from "./queue/memory-store.ts";
import { backUp, restore } from "./sqlite/backup.ts";
import type { PlantDatabase } from "./contract/plant-database.ts";
import type { PlantStore } from "../service/index.ts";
import type { DurableStoreOptions } from "./contract/store-options.ts";

export { type OnBatch, type OnUpkeep, StoreOpenError, type Upkeep } from "./contract/store-options.ts";
export type { MovableStore, StoreCounts } from "./contract/movable-store.ts";
export type { ImportCounts, PlantDatabase } from "./contract/plant-database.ts";
export { importPlants, parseId } from "./records/import-plants.ts";
export { movePlants, reopenPlants } from "./records/move-plants.ts";
export { backUp, type IdRange, openMemoryStore, openSqliteStore, restore };
export { assertSameDatabase, readServerUrl } from "./postgres/server/server-url.ts";

/** The location of a store that outlives its server: an SQLite file or a PostgreSQL database. */
export type PlantLocation = { readonly kind: "sqlite"; readonly path: string } | PostgresLocation;

/** A store's location, or a store in a server's memory. */
export type StoreLocation = PlantLocation | { readonly kind: "memory" };

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

/** Options for {@link openPlantStore}. Without `plantsWhenCreated`, a missing SQLite store is an error. */
export interface StoreOptions extends DurableStoreOptions, Pick<DatabaseOptions, "plantsWhenCreated"> {}

type MoveRole = "source" | "target";

/** What a server does with a kind of store. The functions below describe the other members. */
interface ServedKind<Location> {
  readonly names: OptionNames<Location>;
  /** The database system's name in metrics and spans (`db.system.name` of OpenTelemetry). */
  readonly system: string;
  /** Whether several server processes can use a store. */
  readonly isShared: boolean;
  openStore(location: Location, options: StoreOptions): Promise<PlantStore>;
}

/** What a kind of store that outlives its server does at its location. */
interface StoreKind<Location> extends ServedKind<Location> {
  /** Copies stores, or names the tools that do. */
  copiesOf(location: Location): StoreCopies | string;
  openDatabase(location: Location): Promise<PlantDatabase>;
  check(location: Location): Promise<readonly string[]>;
  migrate(location: Location, onWaiting?: (what: string) => void): Promise<Versions>;
  openMovable(location: Location, role: MoveRole): Promise<MovableStore>;
}

interface StoreCopies {
  readonly path: string;
  /** Copies a snapshot to a file that does not exist, also while a server uses the store. */
  backUp(file: string): void;
  /** Replaces the store with a copy. No server may use the store. */
  restore(file: string): void;
}

// Imports the PostgreSQL modules on demand. A server on SQLite then starts a third sooner.
const kinds: {
  readonly [Kind in PlantLocation["kind"]]: StoreKind<Extract<PlantLocation, { readonly kind: Kind }>>;
} & { readonly memory: ServedKind<{ readonly kind: "memory" }> } = {
  memory: {
    names: { kind: required },
    system: "memory",
    isShared: false,
    openStore: async (_, { plantsWhenCreated }) =>
      openMemoryStore(new Set(plantsWhenCreated && idsInRange(plantsWhenCreated))),
  },
  sqlite: {
    names: { kind: required, path: required },
    system: "sqlite",
    // The file has a single writer.
    isShared: false,
    copiesOf: ({ path }) => ({ path, backUp: (file) => backUp(path, file), restore: (file) => restore(path, file) }),
    openStore: ({ path: file }, options) => openSqliteStore({ file, ...options }),
    openDatabase: ({ path }) => openSqliteDatabase(path),
    check: async ({ path }) => checkSqliteStore(path),
    migrate: async ({ path }) => migrateSqlite(path),
    openMovable: ({ path }) => openMovableSqlite(path),
  },
  postgres: {
    names: { kind: required, url: required, urlFile: true, currentUrl: true },
    system: "postgresql",
    isShared: true,
    copiesOf: () => "pg_dump and pg_restore",
    openStore: async (location, options) =>
      (await import("./postgres/postgres-store.ts")).openPostgresStore({ ...location, ...options }),
    openDatabase: async ({ url }) => (await importPlantDatabase()).openPostgresDatabase(url),
    check: async ({ url }) => (await importPlantDatabase()).checkPostgresStore(url),
    migrate: async ({ url }, onWaiting) => (await importPlantDatabase()).migratePostgres(url, onWaiting),
    openMovable: async ({ url }, role) =>
      (await import("./postgres/all-plants/movable-store.ts")).openMovablePostgres(url, role === "target"),
  },
};

// A location's kind selects its own row, so the row accepts the location.
const kindOf = ({ kind }: PlantLocation): StoreKind<PlantLocation> => kinds[kind];

function* idsInRange({ first, last }: IdRange): Iterable<bigint> {
  for (let id = first; id <= last; id += 1n) yield id;
}

const importPlantDatabase = () => import("./postgres/all-plants/plant-database.ts");

const storeOptionNames: OptionNames<StoreOptions> = {
  deletionsKeptMs: true,
  onBatch: true,
  onUpkeep: true,
  plantsWhenCreated: { first: true, last: true },
};

/**
 * Opens an existing store for a server, or a new store in memory, which has only the plants of `plantsWhenCreated`.
 *
 * @throws StoreOpenError for the operator; TypeError for unknown options
 */
export async function openPlantStore(location: StoreLocation, options: StoreOptions = {}): Promise<PlantStore> {
  requireObject(location, "openPlantStore", "a location");
  requireName(kinds, location.kind, "kind of openPlantStore");
  const kind: ServedKind<StoreLocation> = kinds[location.kind];
  refuseUnknownOptions(location, kind.names, "a location of openPlantStore");
  refuseUnknownOptions(options, storeOptionNames, "openPlantStore");
  return await kind.openStore(location, options);
}

/** Returns whether a store outlives its server, so that commands can use the store. */
export function isDurable(location: StoreLocation): location is PlantLocation {
  return "openDatabase" in kinds[location.kind];
}

/** Returns what a kind of store promises to a server. */
export function promisesOf(kind: StoreLocation["kind"]): Pick<ServedKind<never>, "system" | "isShared"> {
  return kinds[kind];
}

/** Returns the functions that copy a store, or the tools to use instead. */
export function copiesOf(location: PlantLocation): StoreCopies | string {
  return kindOf(location).copiesOf(location);
}

/** Opens an existing database for an operator's commands. @throws StoreOpenError for the operator */
export async function openPlantDatabase(location: PlantLocation): Promise<PlantDatabase> {
  return await kindOf(location).openDatabase(location);
}

/** Checks, without a change, whether a server could delete plants. Returns warnings. @throws StoreOpenError */
export async function checkPlantStore(location: PlantLocation): Promise<readonly string[]> {
  return await kindOf(location).check(location);
}

/**
 * Creates the schema or migrates it to this release's version, and returns the versions before and after. Keeps a newer
 * schema. `onWaiting` is called every few seconds while a migration waits, with the reason. @throws StoreOpenError
 */
export async function migratePlants(location: PlantLocation, onWaiting?: (what: string) => void): Promise<Versions> {
  return await kindOf(location).migrate(location, onWaiting);
}

/** Opens an existing store to move its plants, even while servers use it. @throws StoreOpenError for the operator */
export async function openMovableStore(location: PlantLocation, role: MoveRole): Promise<MovableStore> {
  return await kindOf(location).openMovable(location, role);
}
