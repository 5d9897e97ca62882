import { escapeIdentifier } from "pg";
import { StoreOpenError } from "../../contract/store-open-error.ts";
import { readCommitted } from "../server/pinned-settings.ts";
import type { Session } from "../server/session.ts";
import { checkRequestedSettings, setSql } from "./check-requested-settings.ts";

/**
 * A store's schema. Statements do not depend on the `search_path`, because they qualify all names except operators.
 * Names in `pg_catalog` are also qualified, because a `search_path` can put another schema before `pg_catalog`.
 */
export interface StoreSchema {
  /** The schema's name, as a parameter value. */
  readonly name: string;
  /** The schema's name as an SQL identifier, to qualify functions. */
  readonly quoted: string;
  readonly plants: string;
  /** The plants of a store that a move has set aside. */
  readonly movedPlants: string;
  readonly deletions: string;
  readonly versionTable: string;
}

/** Returns the schema with this name. */
export function storeSchema(name: string): StoreSchema {
  const quoted = escapeIdentifier(name);
  return {
    name,
    quoted,
    plants: `${quoted}.plants`,
    movedPlants: `${quoted}.moved_plants`,
    deletions: `${quoted}.deletions`,
    versionTable: `${quoted}.plantstore_schema`,
  };
}

/**
 * Finds the store's schema: the first schema in the `search_path` with a store, or else the first schema, where
 * `migrate` creates a store. The database URL sets the `search_path`, or else the role or the database. A later `SET`
 * is ignored, because another client of a pooler may have run it.
 *
 * @throws StoreOpenError if a setting in the URL is not in effect, or the `search_path` has no usable schema
 */
export async function findSchema(session: Session): Promise<StoreSchema> {
  await checkRequestedSettings(session);
  return await session.transact(readCommitted, async () => {
    await session.query(setSql, ["search_path", session.requestedSettings.get("search_path") ?? null]);
    const [found] = await session.query(findSchemaSql);
    if (typeof found?.[0] !== "string") {
      throw new StoreOpenError(
        "search_path contains no schema that the user can use: create one, or change search_path",
      );
    }
    return storeSchema(found[0]);
  });
}

// Excludes the schema for temporary tables, which exist only on this connection.
const findSchemaSql = `
  SELECT path.name FROM pg_catalog.unnest(pg_catalog.current_schemas(false)) WITH ORDINALITY AS path (name, place)
  LEFT JOIN (
    SELECT nspname FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
    WHERE relname = 'plantstore_schema') AS store ON nspname = path.name
  WHERE path.name NOT LIKE 'pg|_temp|_%' ESCAPE '|'
  ORDER BY nspname IS NULL, place LIMIT 1`;

/** Returns a statement that makes unqualified names refer to a schema for the rest of the transaction. */
export const searchPathSql = ({ quoted }: StoreSchema): string => `SET LOCAL search_path = ${quoted}, pg_temp`;
