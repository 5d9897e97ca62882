import { setTimeout as sleep } from "node:timers/promises";
import { readCommitted } from "../server/pinned-settings.ts";
import type { Session } from "../server/session.ts";
import { sqlStateOf } from "../server/sql-state.ts";
import type { Migration } from "./migrations.ts";
import { searchPathSql, type StoreSchema } from "./store-schema.ts";

/**
 * Milliseconds that a step waits for the lock on a table that servers use. Deletions queue behind it, and wait no longer
 * than this for a lock themselves: at worst they are repeated.
 */
export const tableLockMs = 100;

// Milliseconds between two tries to lock a table, during which deletions go on.
const tableIntervalMs = 1_000;

// How many tries pass before the operator is told again: some five seconds.
const triesPerLine = 5;

/** Called with what a migration is waiting for. Must not throw. */
export type OnWaiting = (what: string) => void;

/**
 * Runs a step that locks a table as soon as nobody else uses the table; deletions do not wait meanwhile.
 *
 * @param step - a transaction that waits for {@link tableLockMs}, such as {@link runLocking}
 */
export async function runBesideServers(
  session: Session,
  step: () => Promise<void>,
  { schema, table }: { readonly schema: StoreSchema; readonly table: string },
  onWaiting?: OnWaiting,
): Promise<void> {
  for (let tries = 0; !(await getsLocks(step)); tries++) {
    if (tries % triesPerLine === 0) onWaiting?.(await findUser(session, schema, table));
    await sleep(tableIntervalMs);
  }
}

/**
 * Returns the statement by which a transaction, or else the session, may take as long as it needs: a query, because SET
 * fails in releases before PostgreSQL 17, which do not have this time-out.
 */
export const endTransactionTimeout = (isLocal: boolean): string =>
  `SELECT pg_catalog.set_config(name, '0', ${isLocal}) FROM pg_catalog.pg_settings WHERE name = 'transaction_timeout'`;

/** Runs statements in one transaction, which waits for locks no longer than {@link tableLockMs}. */
export async function runLocking(session: Session, schema: StoreSchema, sql: string): Promise<void> {
  const begin = `${readCommitted}; ${searchPathSql(schema)}; SET LOCAL lock_timeout = ${tableLockMs};
    ${endTransactionTimeout(true)}`;
  await session.runInTransaction(begin, sql);
}

/** Runs a step, and returns whether it got the locks. */
async function getsLocks(step: () => Promise<void>): Promise<boolean> {
  try {
    await step();
    return true;
  } catch (fault) {
    if (sqlStateOf(fault) === "55P03") return false;
    throw fault;
  }
}

/** Describes the oldest transaction that uses a table. */
async function findUser(session: Session, { quoted }: StoreSchema, table: string): Promise<string> {
  const [found] = await session.query(
    `SELECT pid, application_name, pg_catalog.floor(extract(epoch FROM pg_catalog.now() - xact_start))
     FROM pg_catalog.pg_locks JOIN pg_catalog.pg_stat_activity USING (pid)
     WHERE relation = pg_catalog.to_regclass($1) AND datname = pg_catalog.current_database() AND granted
     ORDER BY xact_start LIMIT 1`,
    [`${quoted}.${table}`],
  );
  if (found === undefined) return `a transaction that uses the table ${table}`;
  const [pid, application, seconds] = found;
  return `server process ${pid} (${application}), which has used the table ${table} for up to ${seconds ?? "?"} s`;
}

/**
 * Builds an index, unless it exists. An index that an interrupted attempt has left is invalid, and is built anew. None
 * is built concurrently in a transaction, so no settings are pinned: the commit of the version that follows makes it
 * durable, and the server refuses it to another role and in read-only transactions.
 */
export async function buildIndex(
  session: Session,
  { quoted }: StoreSchema,
  { table, name, create }: NonNullable<Migration["index"]>,
): Promise<void> {
  const index = `${quoted}.${name}`;
  const [found] = await session.query(
    "SELECT indisvalid FROM pg_catalog.pg_index WHERE indexrelid = pg_catalog.to_regclass($1)",
    [index],
  );
  if (found?.[0] === "t") return;
  if (found !== undefined) await session.run(`DROP INDEX CONCURRENTLY ${index}`);
  await session.run(create(`${quoted}.${table}`));
}
