import type { Placement } from "./delete/placement.ts";
import type { StoreSchema } from "./schema/store-schema.ts";
import type { Session, Workers } from "./server/session.ts";

/** How a store's tables are distributed over several servers. */
export interface DistributedTables {
  /** A value to compare. Layouts differ if the placements differ. */
  readonly layout: unknown;
  place(): Placement;
}

/** The servers over which a store's tables may be distributed. All sessions of a store share this object. */
export interface StoreWorkers extends Workers {
  /** Finds a store's distributed tables, if any. @throws StoreOpenError for an unsupported distribution */
  find(session: Session, schema: StoreSchema): Promise<DistributedTables | undefined>;
}

/** A PostgreSQL extension that distributes tables. table-location.ts registers the only extension. */
export interface Distribution {
  createWorkers(): StoreWorkers;
  /** Checks before a migration that the schema can be distributed. */
  checkSchema(session: Session, schema: StoreSchema): Promise<void>;
  /** Distributes the tables at the end of a migration, if the server has the extension. */
  distribute(session: Session, schema: StoreSchema): Promise<void>;
}
