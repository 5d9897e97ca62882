import type { DurableStoreOptions } from "../../../src/stores/contract/store-options.ts";
import type { PlantLocation } from "../../../src/stores/index.ts";
import type { PlantStore } from "../../../src/service/plant-store.ts";

/** A store with plants, and a way to read the remaining ones without the store. */
export interface OpenedStore extends AsyncDisposable {
  readonly store: PlantStore;
  /** The ids that exist, in ascending order. */
  plants(): Promise<readonly bigint[]> | readonly bigint[];
  /** Opens another store on the same database; missing if the store is not durable. */
  readonly reopen?: (options?: RetentionOptions) => Promise<PlantStore>;
  /** The store's database; missing if the test may not change or kill it. */
  readonly database?: StoreDatabase;
}

/** How long a reopened store keeps deletion records. */
type RetentionOptions = Pick<DurableStoreOptions, "deletionsKeptMs">;
/** Opens a store that has the given plants, and only those. */
export type OpenStore = (plants: readonly bigint[]) => Promise<OpenedStore>;

/** The methods that query a store, by name, except `close`. */
type Asking = Exclude<
  { [Name in keyof PlantStore]: PlantStore[Name] extends (...args: never) => unknown ? Name : never }[keyof PlantStore],
  "close" | undefined
>;

export type Calls = Readonly<Record<Asking, (store: PlantStore) => Promise<unknown>>>;

/** The ways in which a database can be told to keep plants. */
export const protections = [
  "a reference in another table",
  "a trigger that refuses the deletion",
  "a trigger that skips the deletion",
  "a trigger that skips the record",
] as const;

export type Protection = (typeof protections)[number];
/** SQL that protects the plants in a comma-separated list of ids. */
export type ProtectionSql = Readonly<Record<Protection, (ids: string) => string>>;

/** A database that belongs to a test, which changes it, and kills its server. */
export interface StoreDatabase {
  /** Where a process finds the store. */
  readonly location: PlantLocation;
  /** How many queues the store divides its deletions over, by plant. Default 1. */
  readonly queues?: number;
  kill(): Promise<void>;
  /** Runs SQL that SQLite and PostgreSQL understand. */
  run(sql: string): unknown;
  /** Makes the next deletions fail with an error that concerns the whole store. */
  failDeletions(): Promise<void> | void;
  protect(way: Protection, ids: readonly bigint[]): unknown;
  /** Locks plants until the returned function commits. Missing if the database locks all plants together. */
  readonly lock?: (ids: readonly bigint[]) => Promise<() => Promise<void>>;
  /** Returns the plants in all deletion records, in the order in which they were deleted. */
  recorded(): Promise<readonly bigint[]> | readonly bigint[];
  age(days: number): Promise<void> | void;
}

type Durable = OpenedStore & Required<Pick<OpenedStore, "reopen">>;
export type OpenDurable = (plants: readonly bigint[]) => Promise<Durable>;

export type OpenWithDatabase = (
  plants: readonly bigint[],
) => Promise<Durable & Required<Pick<OpenedStore, "database">>>;
