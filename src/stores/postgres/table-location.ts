import { isDeepStrictEqual } from "node:util";
import { citusTables, distribute, findShards, isDistributed } from "../citus/citus-tables.ts";
import { singleServer, type StoreTables } from "./delete/store-tables.ts";
import { checkDatabase } from "./schema/check-database.ts";
import { checkRequestedSettings, findSchema, type StoreSchema } from "./schema/store-schema.ts";
import type { Session } from "./server/session.ts";

// This file is the only one in this folder that imports Citus.
export { distribute, isDistributed };

// Whether `plants` is partitioned, or may have tables that inherit from it.
const isInheritedSql =
  "SELECT relkind = 'p' OR relhassubclass FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass($1)";

/** The location of a store's tables. All sessions of a store share this object. */
export class TableLocation {
  #schema: StoreSchema | undefined;
  #tables: StoreTables | undefined;
  #found: unknown;

  get tables(): StoreTables {
    if (this.#tables === undefined) throw new Error("the location of the tables is not known yet");
    return this.#tables;
  }

  /** Returns the schema. Finds the schema only once, so that a changed search_path does not change the store. */
  async schemaOn(session: Session): Promise<StoreSchema> {
    const schema = this.#schema ?? (await findSchema(session));
    return (this.#schema ??= schema);
  }

  async tablesOn(session: Session): Promise<StoreTables> {
    return this.#tables ?? (await this.refresh(session));
  }

  /** Reads the current location. An operator may distribute the tables, add workers, or inherit from `plants`. */
  async refresh(session: Session): Promise<StoreTables> {
    const schema = await this.schemaOn(session);
    const shards = await findShards(session, schema);
    const [[isInherited] = []] = await session.query(isInheritedSql, [schema.plants]);
    const found = [shards, isInherited];
    // Keeps unchanged tables, because building statements takes a while.
    if (this.#tables !== undefined && isDeepStrictEqual(found, this.#found)) return this.#tables;
    this.#found = found;
    return (this.#tables =
      shards === undefined ? singleServer(schema, isInherited === "t") : citusTables(schema, shards));
  }

  /**
   * Refreshes the location, and checks without a write that plants can be deleted.
   *
   * @throws StoreOpenError for a wrong schema, setting or privilege. Other errors may be temporary
   */
  async check(session: Session): Promise<StoreTables> {
    // Checks the settings each time, because a pooler may have started to drop settings since the last check.
    await checkRequestedSettings(session);
    await checkDatabase(session, await this.schemaOn(session), "serve");
    return await this.refresh(session);
  }
}
