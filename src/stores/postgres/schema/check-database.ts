import { asideProblemOf } from "../../contract/movable-store.ts";
import { assertUsableSchema, noSchema, preReleaseStore, type SchemaVersion } from "../../contract/schema-version.ts";
import { StoreOpenError } from "../../contract/store-options.ts";
import { briefTransaction } from "../server/pinned-settings.ts";
import type { TextRow, Session } from "../server/session.ts";
import { ownSchema, type StoreSchema } from "./store-schema.ts";

/**
 * What a command does with a store: `migrate` its schema, `read` it, `move` rows into it, `write` plants, or `serve`
 * deletions.
 */
type Access = "migrate" | "read" | "move" | "write" | "serve";

// Neon turns fsync off, because the disk of a Neon server is temporary. On Neon, each commit waits for a quorum of
// safekeepers, which appear as a synchronous standby with the name "walproposer". A partition or an inheriting table may
// be unlogged although `plants` is not. The rules for SELECT (`ev_type` 1), disabled rules, and rules for replicas are
// ignored.
const checkSql = `
  WITH RECURSIVE store AS (
    SELECT pg_class.oid, relname FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname = $1 AND relname IN ('plants', 'moved_plants', 'deletions')),
  tables AS (SELECT oid FROM store UNION SELECT inhrelid FROM pg_catalog.pg_inherits JOIN tables ON inhparent = oid)
  SELECT pg_catalog.current_setting('transaction_read_only'), pg_catalog.current_setting('server_encoding'),
    CASE pg_catalog.current_setting('synchronous_standby_names', true) WHEN 'walproposer' THEN 'on'
      ELSE pg_catalog.current_setting('fsync', true) END,
    (SELECT pg_catalog.min(relname) FROM tables JOIN pg_catalog.pg_class USING (oid) WHERE relpersistence <> 'p'),
    (SELECT pg_catalog.min(relname) FROM store WHERE pg_catalog.row_security_active(oid)),
    (SELECT pg_catalog.min(rulename || ' replaces statements on the table ' || relname)
     FROM store JOIN pg_catalog.pg_rewrite ON ev_class = store.oid WHERE ev_type <> '1' AND ev_enabled NOT IN ('D', 'R'))`;

// Finds the missing privileges.
const lackingSql = `
  SELECT pg_catalog.string_agg(kind || ' on ' || relation, ', ') FROM (VALUES
    ('plants', 'SELECT'), ('plants', 'UPDATE'), ('plants', 'DELETE'),
    ('deletions', 'SELECT'), ('deletions', 'INSERT'), ('deletions', 'UPDATE'), ('deletions', 'DELETE')
  ) AS needed (relation, kind)
  WHERE NOT pg_catalog.has_table_privilege(pg_catalog.quote_ident($1) || '.' || relation, kind)`;

// Why the server is read-only, by where a setting's value was set (postgresql.org/docs/current/view-pg-settings.html).
const readOnlySql = `
  SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN 'it is a standby' ELSE 'default_transaction_read_only is set by ' ||
    CASE source WHEN 'user' THEN 'ALTER ROLE' WHEN 'database user' THEN 'ALTER ROLE … IN DATABASE'
      WHEN 'database' THEN 'ALTER DATABASE' WHEN 'client' THEN 'the options of the database URL'
      WHEN 'command line' THEN 'the command line of the server' ELSE 'the configuration of the server' END END
  FROM pg_catalog.pg_settings WHERE name = 'default_transaction_read_only'`;

/**
 * Checks that the database makes commits durable, accepts any text and hides no rows from the user, that this release can
 * use its schema, and that no move has set the store aside. Reading and moving need less. Does not check the settings
 * that the store's statements pin. The separate transactions run as the URL's user.
 *
 * @returns the schema's version
 * @throws StoreOpenError if a check fails. Throws an `Error` if the server is read-only, which a failover may change
 */
export async function checkDatabase(session: Session, schema: StoreSchema, access: Access): Promise<SchemaVersion> {
  const version = await versionOf(session, schema);
  const find = async (sql: string): Promise<TextRow> =>
    (await session.transact(briefTransaction, () => session.query(sql, [schema.name])))[0] ?? [];
  const [readOnly, encoding, fsync, unlogged, hidden, rule] = await find(checkSql);
  if (access !== "read") {
    // Not a StoreOpenError, because a failover may be in progress, and the error may be temporary.
    if (readOnly !== "off") throw new Error(`the server is read-only: ${(await session.query(readOnlySql))[0]?.[0]}`);
    // With another encoding, the server would refuse subjects with characters that the encoding lacks.
    if (encoding !== "UTF8") throw new StoreOpenError(`the encoding of the database must be UTF8, got ${encoding}`);
    if (fsync === "off") throw new StoreOpenError("fsync is off, so commits would not be durable");
    if (unlogged) throw new StoreOpenError(`the table ${unlogged} is unlogged, so commits would not be durable`);
  }
  if (access === "migrate") return version;
  assertUsableSchema(version, ownSchema.version);
  if (access === "write" || access === "serve") await assertNotAside(session, schema);
  if (hidden) {
    throw new StoreOpenError(
      `row security may hide rows of the table ${hidden} from the user, so plants would be reported as missing: ` +
        `run ALTER ROLE … BYPASSRLS, or ALTER TABLE ${hidden} DISABLE ROW LEVEL SECURITY`,
    );
  }
  if (access !== "read" && rule) throw new StoreOpenError(`the rule ${rule}: drop or disable the rule`);
  const [lacking] = access === "serve" ? await find(lackingSql) : [];
  if (lacking) throw new StoreOpenError(`the user lacks privileges: ${lacking}`);
  return version;
}

/** Returns why a move has set the store aside, if one has. */
export async function asideProblemIn(session: Session, { versionTable }: StoreSchema): Promise<string | undefined> {
  const [marks] = await session.query(`SELECT moved_to, moved_from FROM ${versionTable}`);
  return marks && asideProblemOf({ movedTo: marks[0] ?? null, movedFrom: marks[1] ?? null });
}

/** @throws StoreOpenError if a move has set the store aside */
export async function assertNotAside(session: Session, schema: StoreSchema): Promise<void> {
  const problem = await asideProblemIn(session, schema);
  if (problem !== undefined) throw new StoreOpenError(problem);
}

// Reads the catalog directly, because the cache of to_regclass may be older than the lock. Builds before release 0.1.0
// had no oldest version, or partitioned the records by day.
const hasVersionSql = `
  SELECT EXISTS (SELECT FROM pg_catalog.pg_attribute WHERE attrelid = pg_class.oid AND attname = 'undone')
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_class AS records
      WHERE records.relnamespace = pg_class.relnamespace AND relname = 'deletions' AND relkind = 'p')
  FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
  WHERE nspname = $1 AND relname = 'plantstore_schema'`;

/** @throws StoreOpenError when the store is older than release 0.1.0 */
async function versionOf(session: Session, { name, versionTable }: StoreSchema): Promise<SchemaVersion> {
  const [found] = await session.query(hasVersionSql, [name]);
  if (found === undefined) return noSchema;
  if (found[0] !== "t") throw preReleaseStore();
  const [row] = await session.query(`SELECT version, oldest_server FROM ${versionTable}`);
  return row === undefined ? noSchema : { version: Number(row[0]), oldestServer: Number(row[1]) };
}
