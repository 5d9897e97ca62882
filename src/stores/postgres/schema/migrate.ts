import { setTimeout as sleep } from "node:timers/promises";
import { assertUsableSchema, schemaAfter, type SchemaVersion, type Versions } from "../../contract/schema-version.ts";
import { sqlStateOf } from "../server/connect.ts";
import { briefTransaction } from "../server/pinned-settings.ts";
import { retryTransientErrors, type Session } from "../server/session.ts";
import { checkDatabase } from "./check-database.ts";
import { type PostgresMigration, searchPathSql, type StoreSchema, tablesSql } from "./store-schema.ts";

// Timeout for a migration step's table lock, in milliseconds. While a step waits for the lock, deletions wait for the
// step. Deletions have the same lock timeout, after which they are retried.
const tableLockMs = 100;

// Interval between attempts to lock a table, in milliseconds. Deletions continue between attempts.
const lockRetryIntervalMs = 1_000;

// Number of attempts between two reports to the operator. Five attempts take about five seconds.
const attemptsPerReport = 5;

/** Called while a migration waits, with the reason for the wait. Must not throw. */
export type OnWaiting = (what: string) => void;

/** A migration's session, schema and steps. The session has no timeouts. The steps start from version 1. */
interface Migrating {
  readonly session: Session;
  readonly schema: StoreSchema;
  readonly steps: readonly PostgresMigration[];
}

/**
 * Migrates the database to the newest schema, step by step, and returns the versions before and after. Only one of
 * several processes runs each step. A newer schema that this release can use is not changed.
 *
 * @throws StoreOpenError if this release cannot use the schema, or the database is unsuitable for a store
 */
export async function migrate(migrating: Migrating, onWaiting?: OnWaiting): Promise<Versions> {
  const { session, schema, steps } = migrating;
  const readVersion = (): Promise<SchemaVersion> =>
    retryTransientErrors(session, () => checkDatabase(session, schema, "migrate"));
  const from = await readVersion();
  let to = from;
  for (let attempts = 0; to.version < schemaAfter(steps).version;) {
    const { version } = to;
    const step = retryTransientErrors(session, () => runStep(migrating, version));
    const fault = await step.catch((error: unknown) => error);
    to = await readVersion();
    // Ignores the error if the version has changed. Another process has run the step, or the step was committed.
    if (fault === undefined || to.version !== version) continue;
    if (sqlStateOf(fault) !== "55P03") throw fault;
    if (attempts++ % attemptsPerReport === 0)
      onWaiting?.(`a transaction that uses the table ${steps[version - 1]?.table ?? schema.versionTable}`);
    await sleep(lockRetryIntervalMs);
  }
  assertUsableSchema(to, schemaAfter(steps).version);
  return { from: from.version, to: to.version };
}

// Creates the tables, or runs the step from this version. Does nothing if another process has already run the step. If
// several processes create the tables, the others wait for the first, and only one succeeds.
async function runStep({ session, schema, steps }: Migrating, version: number): Promise<void> {
  const begin = `${briefTransaction}; ${searchPathSql(schema)}; SET LOCAL lock_timeout = ${tableLockMs};
    ${disableTransactionTimeout}`;
  await session.transact(begin, async () => {
    const step = steps[version - 1];
    if (step === undefined) return void (await session.run(tablesSql));
    // Locks a row, because Citus supports few other locks.
    const [row] = await session.query(`SELECT version FROM ${schema.versionTable} FOR UPDATE`);
    if (row?.[0] !== String(version)) return;
    await session.run(step.sql);
    const next = schemaAfter(steps.slice(0, version));
    await session.run(
      `UPDATE ${schema.versionTable} SET version = ${next.version}, oldest_server = ${next.oldestServer}`,
    );
  });
}

/** Disables `transaction_timeout` (PostgreSQL 17) for the transaction. SET would fail in older releases. */
export const disableTransactionTimeout =
  "SELECT pg_catalog.set_config(name, '0', true) FROM pg_catalog.pg_settings WHERE name = 'transaction_timeout'";
