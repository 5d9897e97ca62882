import { StoreOpenError } from "../store-open-error.ts";
import { migrations } from "./migrations.ts";
import type { Session } from "./session.ts";

// "PLNT": a number that no other program is likely to use.
const lockKey = 0x504c4e54;

/**
 * Migrates the database to the newest schema, one transaction per step, and returns the versions before and after. Of
 * several processes that do this at once, one does it and the others wait.
 *
 * @throws StoreOpenError when the schema is newer than this release, or the database is not fit for a store
 */
export async function migrate(session: Session): Promise<{ readonly from: number; readonly to: number }> {
  const from = await versionOf(session);
  await checkSettings(session);
  for (let version = from; version < migrations.length; version++) await takeStep(session, version);
  await checkDatabase(session);
  return { from, to: migrations.length };
}

/**
 * Checks that the database can be written, makes commits durable, accepts any text, and has the schema of this release.
 *
 * @throws StoreOpenError when not, and an `Error` when it is read-only, which a failover may change
 */
export async function checkDatabase(session: Session): Promise<void> {
  const version = await versionOf(session);
  await checkSettings(session);
  if (version === migrations.length) return;
  const found = version === 0 ? "there is no plant store in it yet" : `its schema has version ${version}`;
  const advice = version < migrations.length ? "run `plantstore migrate`" : "it needs a newer release";
  throw new StoreOpenError(`${found} and this release works with version ${migrations.length}: ${advice}`);
}

async function takeStep(session: Session, version: number): Promise<void> {
  try {
    await session.begin(`BEGIN; SELECT pg_advisory_xact_lock(${lockKey})`);
    // Checked again under the lock.
    if ((await versionOf(session)) === version) {
      await session.run(migrations[version] ?? "");
      await session.query("UPDATE plantstore_schema SET version = $1", [version + 1]);
    }
    await session.commit();
  } catch (fault) {
    session.discard();
    throw fault;
  }
}

async function checkSettings(session: Session): Promise<void> {
  const [row] = await session.query(
    `SELECT current_setting('transaction_read_only'), current_setting('server_encoding'),
       current_setting('synchronous_commit'), current_setting('fsync', true), current_setting('client_min_messages'),
       (SELECT relname FROM pg_class WHERE relname IN ('plants', 'deletions') AND relpersistence <> 'p'
        AND pg_table_is_visible(oid) ORDER BY relname LIMIT 1)`,
  );
  const [readOnly, encoding, synchronousCommit, fsync, clientMinMessages, unlogged] = row ?? [];
  // Not for the operator to settle: another server may be taking over.
  if (readOnly !== "off") throw new Error("the server is read-only");
  // Another encoding may lack characters of a subject, and would refuse the whole deletion.
  if (encoding !== "UTF8") throw new StoreOpenError(`the database has the encoding ${encoding} and must have UTF8`);
  if (fsync === "off") throw new StoreOpenError("fsync is off, so commits would not be durable");
  // "local" and "remote_write" do not wait until synchronous standbys have a commit on disk.
  if (synchronousCommit !== "on" && synchronousCommit !== "remote_apply") {
    throw new StoreOpenError(`synchronous_commit is ${synchronousCommit}, so commits would not be durable`);
  }
  // A commit that its standbys do not have is reported by a warning.
  if (clientMinMessages === "error" || clientMinMessages === "fatal" || clientMinMessages === "panic") {
    throw new StoreOpenError(
      `client_min_messages is ${clientMinMessages}, which would hide that a commit is not on its standbys`,
    );
  }
  if (unlogged) throw new StoreOpenError(`the table ${unlogged} is unlogged, so commits would not be durable`);
}

async function versionOf(session: Session): Promise<number> {
  // From the catalogue: to_regclass answers from a cache that may be older than the lock.
  const found = await session.query(
    "SELECT FROM pg_class WHERE relname = 'plantstore_schema' AND pg_table_is_visible(oid)",
  );
  if (found.length === 0) return 0;
  const [row] = await session.query("SELECT version FROM plantstore_schema");
  return Number(row?.[0] ?? 0);
}
