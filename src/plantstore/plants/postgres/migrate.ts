import { setTimeout as sleep } from "node:timers/promises";
import { StoreOpenError } from "../store-open-error.ts";
import { distribute, refuseDistributedSchema } from "./citus.ts";
import { sqlStateOf } from "./fault-table.ts";
import { type Migration, migrations } from "./migrations.ts";
import { repeatWhileRefused } from "./repeat-while-refused.ts";
import type { Session } from "./session.ts";

// Milliseconds between two tries to become the process that migrates. Waiting in a statement instead would keep a
// snapshot, and the build of an index would wait for that in turn.
const lockIntervalMs = 100;

// Milliseconds that a step waits for the lock on a table that servers use. Deletions queue behind it, and wait no
// longer than this for a lock themselves: at worst they are repeated.
const tableLockMs = 100;

// Milliseconds between two tries to lock a table, during which deletions go on.
const tableIntervalMs = 1_000;

// How many tries pass before the operator is told again: some five seconds.
const triesPerLine = 5;

// A query, because SET fails in releases before PostgreSQL 17, which do not have this time-out.
const endTransactionTimeout = (isLocal: boolean): string =>
  `SELECT set_config(name, '0', ${isLocal}) FROM pg_settings WHERE name = 'transaction_timeout'`;

/** Called with what a migration is waiting for. Must not throw. */
export type OnWaiting = (what: string) => void;

/**
 * Migrates the database to the newest schema, step by step, and returns the versions before and after. A step that
 * fails leaves the version as it was, and is run again by the next attempt. Of several processes that migrate at once,
 * one does it and the others wait.
 *
 * @param session - without time-outs
 * @param lock - a second such session, which keeps the other processes waiting; it is disconnected at the end
 * @throws StoreOpenError when the schema is newer than this release, or the database is not fit for a store
 */
export async function migrate(
  session: Session,
  lock: Session,
  onWaiting?: OnWaiting,
): Promise<{ readonly from: number; readonly to: number }> {
  const from = await repeatWhileRefused(session, async () => {
    await checkSettings(session);
    await refuseDistributedSchema(session);
    return await versionOf(session);
  });
  while (await repeatWhileRefused(session, () => takeNextStep(session, lock, onWaiting)));
  await repeatWhileRefused(session, () => distribute(session));
  await repeatWhileRefused(session, () => checkDatabase(session));
  return { from, to: migrations.length };
}

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

/** Takes the next step, or lets another process take it, and returns whether there may be more. */
async function takeNextStep(session: Session, lock: Session, onWaiting?: OnWaiting): Promise<boolean> {
  const version = await versionOf(session);
  const step = migrations[version];
  if (step === undefined) return false;
  try {
    if (version === 0) await createSchema(session, step);
    else if (await lockOthersOut(lock, version)) await takeStep(session, lock, { version, step, onWaiting });
    else await sleep(lockIntervalMs);
  } catch (fault) {
    session.discard();
    // Another process has taken the step, or the server has committed it without knowing.
    if ((await versionOf(session)) === version) throw fault;
  } finally {
    // Lets the other processes go on.
    lock.discard();
  }
  return true;
}

/**
 * Takes the first step, before there is anything to lock: of several processes, all but one find the tables created.
 */
async function createSchema(session: Session, { sql }: Migration): Promise<void> {
  await session.begin("BEGIN");
  await session.run(`${sql}; ${setVersion(1)}`);
  await session.commit();
}

/**
 * Locks the row of the version until the end of the transaction. Returns whether that succeeded and the version is this
 * one. It is a row, because distributed engines have few other locks.
 */
async function lockOthersOut(lock: Session, version: number): Promise<boolean> {
  // No time-outs, because an index may take long to build. Only under READ COMMITTED, an idle transaction has no
  // snapshot.
  await lock.begin(`BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = 0;
    ${endTransactionTimeout(true)}`);
  const [row] = await lock.query("SELECT version FROM plantstore_schema FOR UPDATE SKIP LOCKED");
  return row?.[0] === String(version);
}

interface StepToTake {
  readonly version: number;
  readonly step: Migration;
  readonly onWaiting: OnWaiting | undefined;
}

/** Takes a step under the lock. The version changes with it, or after its index is built. */
async function takeStep(session: Session, lock: Session, { version, step, onWaiting }: StepToTake): Promise<void> {
  if (step.index === undefined) await lock.run(step.sql);
  else {
    await runBesideServers(session, step.sql, step.index.table, onWaiting);
    await session.run(endTransactionTimeout(false));
    await buildIndex(session, step.index);
  }
  await lock.run(setVersion(version + 1));
  await lock.commit();
}

/** Runs a step that locks a table as soon as nobody else uses the table; deletions do not wait meanwhile. */
async function runBesideServers(session: Session, sql: string, table: string, onWaiting?: OnWaiting): Promise<void> {
  for (let tries = 0; !(await runLocking(session, sql)); tries++) {
    if (tries % triesPerLine === 0) onWaiting?.(await findUser(session, table));
    await sleep(tableIntervalMs);
  }
}

/** Runs statements in one transaction, and returns whether it got the locks. */
async function runLocking(session: Session, sql: string): Promise<boolean> {
  try {
    await session.run(`SET LOCAL lock_timeout = ${tableLockMs}; ${sql}`);
    return true;
  } catch (fault) {
    if (sqlStateOf(fault) === "55P03") return false;
    throw fault;
  }
}

/** Describes the oldest transaction that uses a table. */
async function findUser(session: Session, table: string): Promise<string> {
  const [found] = await session.query(
    `SELECT pid, application_name, floor(extract(epoch FROM now() - xact_start))
     FROM pg_locks JOIN pg_stat_activity USING (pid)
     WHERE relation = to_regclass($1) AND datname = current_database() AND granted
     ORDER BY xact_start LIMIT 1`,
    [table],
  );
  if (found === undefined) return `a transaction that uses the table ${table}`;
  const [pid, application, seconds] = found;
  return `process ${pid} of the server (${application}), which has used the table ${table} for up to ${seconds ?? "?"} s`;
}

function setVersion(version: number): string {
  return `UPDATE plantstore_schema SET version = ${version}`;
}

/** Builds an index, unless it exists. An index that an interrupted attempt has left is invalid, and is built anew. */
async function buildIndex(session: Session, { name, create }: NonNullable<Migration["index"]>): Promise<void> {
  const [found] = await session.query(
    "SELECT indisvalid FROM pg_index JOIN pg_class ON oid = indexrelid WHERE relname = $1 AND pg_table_is_visible(oid)",
    [name],
  );
  if (found?.[0] === "t") return;
  if (found !== undefined) await session.run(`DROP INDEX CONCURRENTLY ${name}`);
  await session.run(create);
}

async function checkSettings(session: Session): Promise<void> {
  const [row] = await session.query(
    `SELECT current_setting('transaction_read_only'), current_setting('server_encoding'),
       current_setting('synchronous_commit'), current_setting('fsync', true), current_setting('client_min_messages'),
       (SELECT relname FROM pg_class WHERE relname IN ('plants', 'deletions') AND relpersistence <> 'p'
        AND pg_table_is_visible(oid) ORDER BY relname LIMIT 1)`,
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

async function versionOf(session: Session): Promise<number> {
  // From the catalogue: to_regclass answers from a cache that may be older than the lock.
  const found = await session.query(
    "SELECT FROM pg_class WHERE relname = 'plantstore_schema' AND pg_table_is_visible(oid)",
  );
  if (found.length === 0) return 0;
  const [row] = await session.query("SELECT version FROM plantstore_schema");
  return Number(row?.[0] ?? 0);
}
