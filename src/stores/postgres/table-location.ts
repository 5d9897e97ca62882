import { isDeepStrictEqual } from "node:util";
import { citusPlacement, CitusWorkers, distribute, refuseDistributedSchema } from "../citus/index.ts";
import type { Placement } from "./delete/placement.ts";
import { singleServer } from "./delete/single-server.ts";
import { checkDatabase, checkRights } from "./schema/check-database.ts";
import { findSchema, type StoreSchema } from "./schema/store-schema.ts";
import type { Session } from "./server/session.ts";

// This file is the only one in this folder that imports Citus.
export { distribute, refuseDistributedSchema };

/** The schema and placement of a store's tables. All sessions of a store share this object. */
export class TableLocation {
  readonly workers: CitusWorkers = new CitusWorkers();
  #schema: StoreSchema | undefined;
  #placement: Placement | undefined;
  #shards: unknown;

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
    // Keeps an unchanged placement, because building statements and finding an id for each worker take a while.
    if (this.#placement !== undefined && isDeepStrictEqual(shards, this.#shards)) return;
    this.#placement = shards === undefined ? singleServer(schema) : citusPlacement(schema, shards);
    this.#shards = shards;
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
    await this.refresh(session);
    await this.placement.checkWorkers(session);
  }
}
