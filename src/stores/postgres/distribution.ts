import type { Placement } from "./delete/placement.ts";
import type { StoreSchema } from "./schema/store-schema.ts";
import type { Session, Workers } from "./server/session.ts";

/** How a store's tables are distributed over several servers. */
export interface DistributedTables {
  /** Changes if the placement changes. */
  readonly layout: unknown;
  /** Returns the placement. */
  place(): Placement;
}

/** The servers over which a store's tables may be distributed. Shared by the store's sessions. */
export interface StoreWorkers extends Workers {
  /**
   * Finds a store's tables. Returns `undefined` if they are on a single server.
   *
   * @throws StoreOpenError when they are distributed in a way that is not supported
   */
  find(session: Session, schema: StoreSchema): Promise<DistributedTables | undefined>;
}

/** An extension of PostgreSQL that distributes tables. table-location.ts registers the only one. */
export interface Distribution {
  createWorkers(): StoreWorkers;
  /** Checks before a migration that the schema can be distributed. */
  checkSchema(session: Session, schema: StoreSchema): Promise<void>;
  /** Distributes the tables at the end of a migration, if the server has the extension. */
  distribute(session: Session, schema: StoreSchema): Promise<void>;
}
