import { isDeepStrictEqual } from "node:util";
import { citusPlacement, CitusWorkers, distribute, refuseDistributedSchema } from "../citus/index.ts";
import type { Placement } from "./delete/placement.ts";
import { singleServer, singleServerByDay } from "./delete/single-server.ts";
import { checkDatabase, checkRights } from "./schema/check-database.ts";
import { refuseRenamedSchema } from "./schema/renamed-schema.ts";
import { findSchema, type StoreSchema } from "./schema/store-schema.ts";
import type { Session } from "./server/session.ts";

// This file is the only one in this folder that imports Citus.
export { distribute, refuseDistributedSchema };

const isPartitionedSql = "SELECT FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass($1) AND relkind = 'p'";

/** The schema and placement of a store's tables. All sessions of a store share this object. */
export class TableLocation {
  readonly workers: CitusWorkers = new CitusWorkers();
  #schema: StoreSchema | undefined;
  #placement: Placement | undefined;
  #layout: unknown;

  get placement(): Placement {
    if (this.#placement === undefined) throw new Error("the location of the tables is not known yet");
    return this.#placement;
  }

  /** Returns the schema. Finds the schema only once, so that a changed search_path does not change the store. */
  async schemaOn(session: Session): Promise<StoreSchema> {
    const schema = this.#schema ?? (await findSchema(session));
    return (this.#schema ??= schema);
  }

  async placementOn(session: Session): Promise<Placement> {
    if (this.#placement === undefined) await this.refresh(session);
    return this.placement;
  }

  /** Reads the current placement. An operator may distribute the tables, or add workers, at any time. */
  async refresh(session: Session): Promise<void> {
    const schema = await this.schemaOn(session);
    const shards = await this.workers.findShards(session, schema);
    const isByDay = (await session.query(isPartitionedSql, [schema.deletions])).length > 0;
    const layout = { shards, isByDay };
    // Keeps an unchanged placement, because building statements and finding an id for each worker take a while.
    if (isDeepStrictEqual(layout, this.#layout)) return;
    const singlePlacement = isByDay ? singleServerByDay : singleServer;
    this.#placement = shards === undefined ? singlePlacement(schema) : citusPlacement(schema, shards);
    this.#layout = layout;
  }

  /**
   * Refreshes the placement, and checks without a write that plants can be deleted.
   *
   * @throws StoreOpenError for a wrong schema, setting or privilege. Other errors may be temporary
   */
  async check(session: Session): Promise<void> {
    const schema = await this.schemaOn(session);
    await checkDatabase(session, schema);
    await checkRights(session, schema);
    await refuseRenamedSchema(session, schema);
    await this.refresh(session);
    await this.placement.checkWorkers(session);
  }
}
