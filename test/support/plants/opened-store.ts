import type { PlantLocation } from "../../../src/stores/index.ts";
import type { PlantStore } from "../../../src/service/plant-store.ts";

/** A store with plants, and a way to read the remaining ones without the store. */
export interface OpenedStore extends AsyncDisposable {
  readonly store: PlantStore;
  /** The ids that are there, in ascending order. */
  plants(): Promise<readonly bigint[]> | readonly bigint[];
  /** Opens another store of the same plants; missing if the store {@link Lack lacks} durability. */
  readonly reopen?: () => Promise<PlantStore>;
  /** The store's database; missing if the store lacks its own. */
  readonly database?: StoreDatabase;
}

/** The names of the methods that ask a store, except `close`. */
type Asking = Exclude<
  { [Name in keyof PlantStore]: PlantStore[Name] extends (...args: never) => unknown ? Name : never }[keyof PlantStore],
  "close" | undefined
>;

/** A call of each method of a store. */
export type Calls = Readonly<Record<Asking, (store: PlantStore) => Promise<unknown>>>;

/** A database that belongs to a test, which changes it, and kills its server. */
interface StoreDatabase {
  /** Where a process finds the store. */
  readonly location: PlantLocation;
  /** Kills the database's server, if it has one, and starts it again. */
  kill(): Promise<void>;
  /** Runs SQL that SQLite and PostgreSQL understand. */
  run(sql: string): unknown;
  /** Makes the next deletions fail with an error that concerns the whole store. */
  failDeletions(): Promise<void> | void;
}

/** A store that can be opened again. */
type Durable = OpenedStore & Required<Pick<OpenedStore, "reopen">>;

/** Opens a durable store that has the given plants, and only those. */
export type OpenDurable = (plants: readonly bigint[]) => Promise<Durable>;

/** Opens such a store with a database that belongs to the test. */
export type OpenWithDatabase = (
  plants: readonly bigint[],
) => Promise<Durable & Required<Pick<OpenedStore, "database">>>;
