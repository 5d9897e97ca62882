import { setTimeout as sleep } from "node:timers/promises";
import { assertUsableSchema, schemaAfter, type SchemaVersion, type Versions } from "../../contract/schema-version.ts";
import { readCommitted } from "../server/pinned-settings.ts";
import { retryTransientErrors } from "../server/retry-transient-errors.ts";
import type { Session } from "../server/session.ts";
import { sqlStateOf } from "../server/sql-state.ts";
import { checkSettings, versionOf } from "./check-database.ts";
import type { Migration } from "./migrations.ts";
import { searchPathSql, type StoreSchema } from "./store-schema.ts";
import { tablesSql } from "./tables.ts";

// Milliseconds that a step waits for the lock on a table that servers use. Deletions queue behind this wait. Their own
// lock timeout is as long, so at worst they are retried.
const tableLockMs = 100;

// Milliseconds between two attempts to lock a table, during which deletions continue.
const lockRetryIntervalMs = 1_000;

// The number of attempts between two reports to the operator: about five seconds.
const attemptsPerReport = 5;

/** Called with what a migration waits for. Must not throw. */
export type OnWaiting = (what: string) => void;

// Whether the server is PostgreSQL itself, in a release that supports row triggers on partitioned tables. Other engines
// that speak its protocol have another name in their version. Citus distributes no table with partitions at two levels.
const canPartitionSql = `
  SELECT WHERE pg_catalog.version() ~ '^PostgreSQL [0-9]+[a-z0-9.]* '
    AND pg_catalog.current_setting('server_version_num')::integer >= 130000
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'citus')`;

/** The session, which has no timeouts, the schema, and the steps from version 1. */
export interface Migrating {
  readonly session: Session;
  readonly schema: StoreSchema;
  readonly steps: readonly Migration[];
}

/**
 * Migrates the database to the newest schema, step by step, and returns the versions before and after. If several
 * processes migrate at the same time, each step is run by one. A newer schema that the release can use is not changed.
 *
 * @throws StoreOpenError when the release cannot use the schema, or the database is unsuitable for a store
 */
export async function migrate(migrating: Migrating, onWaiting?: OnWaiting): Promise<Versions> {
  const { session, schema, steps } = migrating;
  const readVersion = (): Promise<SchemaVersion> =>
    retryTransientErrors(session, async () => {
      await checkSettings(session, schema);
      return await versionOf(session, schema);
    });
  const from = await readVersion();
  while (await retryTransientErrors(session, () => runNextStep(migrating, onWaiting)));
  const to = await readVersion();
  assertUsableSchema(to, schemaAfter(steps).version);
  return { from: from.version, to: to.version };
}

/** Runs the next step, and returns whether there may be more. */
async function runNextStep(migrating: Migrating, onWaiting?: OnWaiting): Promise<boolean> {
  const { session, schema, steps } = migrating;
  const { version } = await versionOf(session, schema);
  if (version >= schemaAfter(steps).version) return false;
  const step = steps[version - 1];
  try {
    if (step === undefined) await createTables(session, schema);
    else await runStep(migrating, version, step, onWaiting);
  } catch (fault) {
    session.discard();
    // Ignored if the version has changed, because another process has run the step, or it was committed after all.
    if ((await versionOf(session, schema)).version === version) throw fault;
  }
  return true;
}

/**
 * Creates the tables. There is nothing to lock yet: if several processes do this, all but one find that the tables
 * exist. Records are partitioned by day if the server is PostgreSQL itself, without Citus.
 */
async function createTables(session: Session, schema: StoreSchema): Promise<void> {
  const isByDay = (await session.query(canPartitionSql)).length > 0;
  await session.runInTransaction(`${readCommitted}; ${searchPathSql(schema)}`, tablesSql(isByDay));
}

/** Runs a step as soon as no other transaction uses its table. Deletions continue meanwhile. */
async function runStep(migrating: Migrating, version: number, step: Migration, onWaiting?: OnWaiting): Promise<void> {
  for (let attempts = 0; ; attempts++) {
    try {
      return await attemptStep(migrating, version, step);
    } catch (fault) {
      if (sqlStateOf(fault) !== "55P03") throw fault;
    }
    if (attempts % attemptsPerReport === 0) onWaiting?.(`a transaction that uses the table ${step.table}`);
    await sleep(lockRetryIntervalMs);
  }
}

// Builds before release 0.1.0 created the table without a key. A publication of all tables then refuses updates.
const primaryKeySql =
  "SELECT FROM pg_catalog.pg_constraint WHERE conrelid = pg_catalog.to_regclass($1) AND contype = 'p'";

/** Runs a step and changes the version in one transaction, unless another process has run the step. */
async function attemptStep({ session, schema, steps }: Migrating, version: number, { sql }: Migration): Promise<void> {
  const begin = `${readCommitted}; ${searchPathSql(schema)}; SET LOCAL lock_timeout = ${tableLockMs};
    SET LOCAL idle_in_transaction_session_timeout = '5s'; ${disableTransactionTimeout}`;
  await session.transact(begin, async () => {
    // A row lock, because distributed engines support few others.
    const [row] = await session.query(`SELECT version FROM ${schema.versionTable} FOR UPDATE`);
    if (row?.[0] !== String(version)) return;
    await session.run(sql);
    const hasKey = (await session.query(primaryKeySql, [schema.versionTable])).length > 0;
    if (!hasKey) await session.run(`ALTER TABLE ${schema.versionTable} ADD PRIMARY KEY (version)`);
    const next = schemaAfter(steps.slice(0, version));
    await session.run(
      `UPDATE ${schema.versionTable} SET version = ${next.version}, oldest_server = ${next.oldestServer}`,
    );
  });
}

/**
 * The statement that disables `transaction_timeout` for the transaction. The statement is a query, because SET fails
 * before PostgreSQL 17, which introduced this timeout.
 */
export const disableTransactionTimeout =
  "SELECT pg_catalog.set_config(name, '0', true) FROM pg_catalog.pg_settings WHERE name = 'transaction_timeout'";
