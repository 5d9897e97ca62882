import { escapeIdentifier } from "pg";
import { StoreOpenError } from "../../store-open-error.ts";
import { readCommitted } from "../server/pinned-settings.ts";
import type { Row, Session } from "../server/session.ts";
import { checkAskedSettings, setSql } from "./check-asked-settings.ts";

/**
 * The schema of a store. Statements name it, so that no `search_path` decides whose plants they delete. All names in
 * them but operators are qualified, also those of `pg_catalog`, before which a `search_path` may put another schema.
 */
export interface StoreSchema {
  /** Its name, for a parameter. */
  readonly name: string;
  /** Its name as an identifier of SQL, for the functions in it. */
  readonly quoted: string;
  /** The table of plants, qualified. */
  readonly plants: string;
  /** The table of deletion records, qualified. */
  readonly deletions: string;
  /** The table with the version of the schema, qualified. */
  readonly versionTable: string;
}

/** Returns a schema by its name. */
export function storeSchema(name: string): StoreSchema {
  const quoted = escapeIdentifier(name);
  const tableOf = (table: string): string => `${quoted}.${table}`;
  return {
    name,
    quoted,
    plants: tableOf("plants"),
    deletions: tableOf("deletions"),
    versionTable: tableOf(versionTable),
  };
}

const versionTable = "plantstore_schema";

/**
 * Finds the schema of the store: the first of the `search_path` that has one, or else the first, where `migrate` makes
 * one. The `search_path` is that of the database URL, or what the connection began with, as set for the role or the
 * database. A `SET`, which may be another client's of a pooler, does not count.
 *
 * @throws StoreOpenError when a setting of the URL did not reach the server, or there is no such schema
 */
export async function findSchema(session: Session): Promise<StoreSchema> {
  await checkAskedSettings(session);
  return await session.transact(readCommitted, async () => {
    await session.query(setSql, ["search_path", session.settings.get("search_path") ?? null]);
    const [found] = await session.query(findSchemaSql, [versionTable]);
    if (typeof found?.[0] !== "string") {
      throw new StoreOpenError(
        "search_path contains no schema that the user can use: create one, or change search_path",
      );
    }
    return storeSchema(found[0]);
  });
}

// Without the schema of temporary tables, which belong to the connection.
const findSchemaSql = `
  SELECT path.name FROM pg_catalog.unnest(pg_catalog.current_schemas(false)) WITH ORDINALITY AS path (name, place)
  LEFT JOIN (
    SELECT nspname FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
    WHERE relname = $1) AS store ON nspname = path.name
  WHERE path.name NOT LIKE 'pg|_temp|_%' ESCAPE '|'
  ORDER BY nspname IS NULL, place LIMIT 1`;

/** Returns the statement that has unqualified names in a transaction mean what is in a schema, as in migrations. */
export function searchPathSql({ quoted }: StoreSchema): string {
  return `SET LOCAL search_path = ${quoted}, pg_temp`;
}

/** Runs a query whose unqualified names are those of a schema. */
export async function queryIn(
  session: Session,
  schema: StoreSchema,
  sql: string,
  values: readonly unknown[] = [],
): Promise<readonly Row[]> {
  return await session.transact(`${readCommitted}; ${searchPathSql(schema)}`, () => session.query(sql, values));
}
