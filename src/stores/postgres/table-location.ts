import { isDeepStrictEqual } from "node:util";
import { citusPlacement } from "../citus/citus-placement.ts";
import type { Shards } from "../citus/shards.ts";
import { CitusWorkers } from "../citus/workers.ts";
import type { Placement } from "./delete/placement.ts";
import { singleServer } from "./delete/single-server.ts";
import { checkDatabase, checkRights } from "./schema/check-database.ts";
import { findSchema, type StoreSchema } from "./schema/store-schema.ts";
import type { Session } from "./server/session.ts";

/** The schema and placement of a store's tables. Shared by all its sessions. */
export class TableLocation {
  /** The servers over which the tables may be distributed. */
  readonly workers: CitusWorkers = new CitusWorkers();
  #schema: StoreSchema | undefined;
  #placement: Placement | undefined;
  #shards: Shards | undefined;

  /** The placement that {@link refresh} has found. */
  get placement(): Placement {
    if (this.#placement === undefined) throw new Error("the location of the tables is not known yet");
    return this.#placement;
  }

  /**
   * Returns the schema. The schema is determined only once, so that a later change of the search_path does not move the
   * store.
   */
  async schemaOn(session: Session): Promise<StoreSchema> {
    const schema = this.#schema ?? (await findSchema(session));
    return (this.#schema ??= schema);
  }

  /** Returns the placement, after {@link refresh} if it is not known yet. */
  async placementOn(session: Session): Promise<Placement> {
    if (this.#placement === undefined) await this.refresh(session);
    return this.placement;
  }

  /**
   * Reads the current placement. An operator may distribute the tables, or add workers, at any time.
   *
   * @throws StoreOpenError as {@link CitusWorkers.find} does
   */
  async refresh(session: Session): Promise<void> {
    const schema = await this.schemaOn(session);
    const shards = await this.workers.find(session, schema);
    // Kept if nothing has changed, because building its statements and finding an id on each worker take a while.
    if (this.#placement !== undefined && isDeepStrictEqual(shards, this.#shards)) return;
    this.#placement = shards === undefined ? singleServer(schema) : citusPlacement(schema, shards);
    this.#shards = shards;
  }

  /**
   * Checks, without a write, that plants can be deleted, after {@link refresh}.
   *
   * @throws StoreOpenError when the database's schema or settings or the user's privileges are wrong. Other errors,
   * which may be temporary, are rethrown
   */
  async check(session: Session): Promise<void> {
    const schema = await this.schemaOn(session);
    await checkDatabase(session, schema);
    await checkRights(session, schema);
    await this.refresh(session);
    await this.placement.checkWorkers(session);
  }
}
