import { StoreOpenError } from "../../store-open-error.ts";
import type { Session } from "../server/session.ts";
import { migrations } from "./migrations.ts";

/**
 * Checks that the database has the schema of this release and, to write to it, that it can be written, makes commits
 * durable and accepts any text.
 *
 * @throws StoreOpenError when not, and an `Error` when it is read-only, which a failover may change
 */
export async function checkDatabase(session: Session, access: "read" | "write" = "write"): Promise<void> {
  const version = await versionOf(session);
  if (access === "write") await checkSettings(session);
  if (version === migrations.length) return;
  const found = version === 0 ? "there is no plant store in it yet" : `its schema has version ${version}`;
  const advice = version < migrations.length ? "run `plantstore migrate`" : "it needs a newer release";
  throw new StoreOpenError(`${found} and this release works with version ${migrations.length}: ${advice}`);
}

// The rights that the statements of deletions, of retries and of retention need. The functions are there if records are
// divided by day.
const lackingSql = `
  SELECT string_agg(needed.kind || ' on ' || needed.relation, ', ') FROM (VALUES
    ('plants', 'SELECT'), ('plants', 'UPDATE'), ('plants', 'DELETE'),
    ('deletions', 'SELECT'), ('deletions', 'INSERT'), ('deletions', 'UPDATE'), ('deletions', 'DELETE')
  ) AS needed (relation, kind) WHERE NOT has_table_privilege(needed.relation, needed.kind)
  HAVING count(*) > 0
  UNION ALL
  SELECT 'EXECUTE on ' || string_agg(proname, ', ') FROM pg_proc
  WHERE proname IN ('plantstore_make_days', 'plantstore_drop_day') AND pg_function_is_visible(oid)
    AND NOT has_function_privilege(oid, 'EXECUTE') HAVING count(*) > 0`;

/**
 * Checks that the user has the rights that deleting needs.
 *
 * @throws StoreOpenError naming those that are missing
 */
export async function checkRights(session: Session): Promise<void> {
  const lacking = await session.query(lackingSql);
  if (lacking.length > 0) throw new StoreOpenError(`the user lacks ${lacking.map(([what]) => what).join(", ")}`);
}

/**
 * Checks that the database can be written, makes commits durable and accepts any text.
 *
 * @throws StoreOpenError when not, and an `Error` when it is read-only, which a failover may change
 */
export async function checkSettings(session: Session): Promise<void> {
  const [row] = await session.query(
    `SELECT current_setting('transaction_read_only'), current_setting('server_encoding'),
       current_setting('synchronous_commit'), current_setting('fsync', true), current_setting('client_min_messages'),
       (SELECT relname FROM pg_class
        WHERE (relname IN ('plants', 'deletions') OR (relname LIKE 'deletions%' AND relispartition))
        AND relpersistence <> 'p' AND pg_table_is_visible(oid) ORDER BY relname LIMIT 1)`,
  );
  const [readOnly, encoding, synchronousCommit, fsync, clientMinMessages, unlogged] = row ?? [];
  // Not a StoreOpenError, because it may pass: another server may be taking over.
  if (readOnly !== "off") throw new Error("the server is read-only");
  // Another encoding may lack characters of a subject, and would refuse the whole deletion.
  if (encoding !== "UTF8") throw new StoreOpenError(`the database has the encoding ${encoding} and must have UTF8`);
  if (fsync === "off") throw new StoreOpenError("fsync is off, so commits would not be durable");
  // "local" and "remote_write" do not wait until synchronous standbys have a commit on disk.
  if (synchronousCommit !== "on" && synchronousCommit !== "remote_apply") {
    throw new StoreOpenError(`synchronous_commit is ${synchronousCommit}, so commits would not be durable`);
  }
  // A commit that its standbys do not have is reported by a warning. There is no higher level than this.
  if (clientMinMessages === "error") {
    throw new StoreOpenError(
      `client_min_messages is ${clientMinMessages}, which would hide that a commit is not on its standbys`,
    );
  }
  if (unlogged) throw new StoreOpenError(`the table ${unlogged} is unlogged, so commits would not be durable`);
}

/** Returns the version of the schema; 0 if there is none. */
export async function versionOf(session: Session): Promise<number> {
  // From the catalogue: to_regclass answers from a cache that may be older than the lock.
  const found = await session.query(
    "SELECT FROM pg_class WHERE relname = 'plantstore_schema' AND pg_table_is_visible(oid)",
  );
  if (found.length === 0) return 0;
  const [row] = await session.query("SELECT version FROM plantstore_schema");
  return Number(row?.[0] ?? 0);
}
