import { setTimeout as sleep } from "node:timers/promises";
import { readCommitted } from "../server/pinned-settings.ts";
import type { Session } from "../server/session.ts";
import { sqlStateOf } from "../server/sql-state.ts";
import type { Migration } from "./migrations.ts";
import { searchPathSql, type StoreSchema } from "./store-schema.ts";

// Milliseconds that a step waits for the lock on a table that servers use. Deletions queue behind this wait. Their own
// lock timeout is as long, so at worst they are retried.
const tableLockMs = 100;

// Milliseconds between two attempts to lock a table, during which deletions continue.
const lockRetryIntervalMs = 1_000;

// How many attempts are made between two reports to the operator: about five seconds.
const attemptsPerReport = 5;

/** Called with what a migration waits for. Must not throw. */
export type OnWaiting = (what: string) => void;

/**
 * Runs statements that lock a table in one transaction, as soon as no other transaction uses the table; deletions
 * continue meanwhile.
 */
export async function runOnline(
  session: Session,
  schema: StoreSchema,
  { sql, table }: Pick<Migration, "sql" | "table">,
  onWaiting?: OnWaiting,
): Promise<void> {
  const begin = `${readCommitted}; ${searchPathSql(schema)}; SET LOCAL lock_timeout = ${tableLockMs};
    ${disableTransactionTimeout(true)}`;
  for (let attempts = 0; ; attempts++) {
    try {
      return await session.runInTransaction(begin, sql);
    } catch (fault) {
      if (sqlStateOf(fault) !== "55P03") throw fault;
    }
    if (attempts % attemptsPerReport === 0) onWaiting?.(await describeLockHolder(session, schema, table));
    await sleep(lockRetryIntervalMs);
  }
}

/**
 * Returns the statement that disables `transaction_timeout` for the transaction or the session. The statement is a
 * query, because SET fails before PostgreSQL 17, which introduced this timeout.
 */
export const disableTransactionTimeout = (isLocal: boolean): string =>
  `SELECT pg_catalog.set_config(name, '0', ${isLocal}) FROM pg_catalog.pg_settings WHERE name = 'transaction_timeout'`;

/** Describes the oldest transaction that uses a table. */
async function describeLockHolder(session: Session, { quoted }: StoreSchema, table: string): Promise<string> {
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
 * Builds an index, unless it exists. An interrupted attempt's index is invalid, and is rebuilt. The index is built
 * outside a transaction, so no settings are pinned. The version's commit, which follows, makes the index durable.
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
