import { escapeIdentifier } from "pg";
import { type SchemaVersion, schemaAfter, type SchemaStep } from "../../contract/schema-version.ts";
import { StoreOpenError } from "../../contract/store-options.ts";
import { sqlStateOf } from "../server/connect.ts";
import { readCommitted } from "../server/pinned-settings.ts";
import { droppedSetting } from "../server/server-url.ts";
import type { Session } from "../server/session.ts";

/** One step to a newer schema. The previous release's servers delete plants during the step. */
export interface PostgresMigration extends SchemaStep {
  /** Runs in one transaction, with the store's schema in the `search_path`. May lock {@link table} briefly. */
  readonly sql: string;
  readonly table: string;
}

/** The steps from schema version 1. Step `i` leads to version `i + 2`. Add steps at the end, never edit old ones. */
export const migrations: readonly PostgresMigration[] = [];

/** The schema version of this release. */
export const ownSchema: SchemaVersion = schemaAfter(migrations);

/**
 * The statements that create the tables for schema version 1, in the first schema in the `search_path`.
 *
 * - In `deletions`, plant_id is not unique, because a restored plant can be deleted again. Retries and imports search
 *   by plant. `plantstore deletions` and retention search by time.
 * - `plantstore_schema` also contains the marks of moves ({@link MoveMarks}).
 * - The index `deletions_by_key` lets only one of several processes use a key, and has no entries for deletions without
 *   a key.
 */
export const tablesSql = `
  CREATE TABLE plantstore_schema (
    version integer PRIMARY KEY,
    oldest_server integer NOT NULL,
    moved_to text,
    moved_from text,
    undone text NOT NULL DEFAULT '');
  INSERT INTO plantstore_schema (version, oldest_server) VALUES (1, 1);
  CREATE TABLE plants (id bigint PRIMARY KEY);
  CREATE TABLE deletions (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    plant_id bigint NOT NULL,
    deleted_at timestamptz NOT NULL DEFAULT now(),
    subject text NOT NULL,
    request_id text NOT NULL,
    batch uuid NOT NULL,
    idempotency_key text);
  CREATE INDEX deletions_by_plant ON deletions (plant_id);
  CREATE INDEX deletions_by_time ON deletions (deleted_at);
  CREATE UNIQUE INDEX deletions_by_key ON deletions (idempotency_key) WHERE idempotency_key IS NOT NULL;`;

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
  const [plants, movedPlants] = [`${quoted}.plants`, `${quoted}.moved_plants`];
  const [deletions, versionTable] = [`${quoted}.deletions`, `${quoted}.plantstore_schema`];
  return { name, quoted, plants, movedPlants, deletions, versionTable };
}

/** Returns a statement that makes unqualified names refer to a schema for the rest of the transaction. */
export const searchPathSql = ({ quoted }: StoreSchema): string => `SET LOCAL search_path = ${quoted}, pg_temp`;

// Excludes the schema for temporary tables, which exist only on this connection.
const findSchemaSql = `
  SELECT path.name FROM pg_catalog.unnest(pg_catalog.current_schemas(false)) WITH ORDINALITY AS path (name, place)
  LEFT JOIN (
    SELECT nspname FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
    WHERE relname = 'plantstore_schema') AS store ON nspname = path.name
  WHERE path.name NOT LIKE 'pg|_temp|_%' ESCAPE '|'
  ORDER BY nspname IS NULL, place LIMIT 1`;

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
    if (typeof found?.[0] === "string") return storeSchema(found[0]);
    throw new StoreOpenError("search_path contains no schema that the user can use: create one, or change search_path");
  });
}

/** Checks that the settings in the URL's `options`, unless overridden, are in effect. @throws StoreOpenError */
export async function checkRequestedSettings(session: Session): Promise<void> {
  const requested = session.requestedSettings;
  if (requested.size === 0) return;
  await session.transact(readCommitted, async () => {
    for (const [name, value] of requested) if (!(await isInEffect(session, name, value))) throw droppedSetting(name);
  });
}

// Changes a setting for a transaction. NULL resets the setting to its value when the connection started.
const setSql = "SELECT pg_catalog.set_config($1, $2, true)";
const currentSql = "SELECT pg_catalog.current_setting($1, true)";
const sourceSql = "SELECT source FROM pg_catalog.pg_settings WHERE pg_catalog.lower(name) = $1";

// Returns whether a setting has this value now, for example from a pooler, or had this value when the connection
// started, for example from the role. For a setting that cannot be changed later, such as `log_connections`, only
// checks that the client has set a value, because no guarantee depends on the value.
async function isInEffect(session: Session, name: string, value: string): Promise<boolean> {
  try {
    await session.run("SAVEPOINT requested");
    // Separate statements, because a statement may evaluate its expressions in any order.
    const [now] = await session.query(currentSql, [name]);
    const [initial] = await session.query(setSql, [name, null]);
    // The server normalizes values. For example, 1000 becomes 1s.
    const [normalized] = await session.query(setSql, [name, value]);
    return normalized?.[0] === now?.[0] || normalized?.[0] === initial?.[0];
  } catch (fault) {
    // SQLSTATEs of errors for an unknown setting, or for a setting that the user cannot change now.
    if (!/^(?:22|42|55)/.test(sqlStateOf(fault) ?? "")) throw fault;
  }
  await session.run("ROLLBACK TO SAVEPOINT requested");
  const [found] = await session.query(sourceSql, [name]);
  return found?.[0] === "client";
}
