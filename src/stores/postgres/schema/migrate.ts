import { setTimeout as sleep } from "node:timers/promises";
import { assertUsableSchema, schemaAfter, type SchemaVersion } from "../../contract/schema-version.ts";
import { readCommitted } from "../server/pinned-settings.ts";
import { retryTransientErrors } from "../server/retry-transient-errors.ts";
import type { Session } from "../server/session.ts";
import { buildIndex, disableTransactionTimeout, type OnWaiting, runOnline } from "./online-migration.ts";
import { checkSettings, versionOf } from "./check-database.ts";
import type { Migration } from "./migrations.ts";
import { searchPathSql, type StoreSchema } from "./store-schema.ts";
import { tablesSql } from "./tables.ts";

// Milliseconds between two attempts to become the process that migrates. A statement that waits for the lock would hold
// a snapshot, and building an index waits for snapshots.
const lockIntervalMs = 100;

/** The schema's version before a migration, and after it. */
export interface Versions {
  readonly from: number;
  /** Greater than the release's version if a newer schema was left unchanged. */
  readonly to: number;
}

/**
 * Migrates the database to the newest schema, step by step, and returns the versions before and after. A failed step
 * does not change the version, so the next attempt runs it again. If several processes migrate at the same time, one
 * does the work and the others wait. A newer schema that the release can use is left unchanged.
 *
 * @throws StoreOpenError when the release cannot use the schema, or the database is unsuitable for a store
 */
export async function migrate(sessions: Migrating, onWaiting?: OnWaiting): Promise<Versions> {
  const { session, schema, steps } = sessions;
  const readVersion = (): Promise<SchemaVersion> =>
    retryTransientErrors(session, async () => {
      await checkSettings(session, schema);
      return await versionOf(session, schema);
    });
  const from = await readVersion();
  while (await retryTransientErrors(session, () => runNextStep(sessions, onWaiting)));
  const to = await readVersion();
  assertUsableSchema(to, schemaAfter(steps).version);
  return { from: from.version, to: to.version };
}

/** The sessions, which have no timeouts, the schema and a migration's steps. */
export interface Migrating {
  readonly session: Session;
  /** Blocks the other processes. Disconnected at the end. */
  readonly lock: Session;
  readonly schema: StoreSchema;
  readonly steps: readonly Migration[];
}

/** Runs the next step, or waits for another process, and returns whether there may be more. */
async function runNextStep(migrating: Migrating, onWaiting?: OnWaiting): Promise<boolean> {
  const { session, lock, schema, steps } = migrating;
  const { version } = await versionOf(session, schema);
  if (version >= schemaAfter(steps).version) return false;
  const step = steps[version - 1];
  try {
    if (step === undefined) await createTables(session, schema);
    else if (await lockVersion(lock, schema, version)) await runStep(migrating, version, step, onWaiting);
    else await sleep(lockIntervalMs);
  } catch (fault) {
    session.discard();
    // Ignored if the version has changed. Another process has run the step, or the server has committed it despite the
    // error.
    if ((await versionOf(session, schema)).version === version) throw fault;
  } finally {
    // Unblocks the other processes.
    lock.discard();
  }
  return true;
}

/**
 * Creates the tables. There is nothing to lock yet: if several processes do this, all but one find that the tables
 * exist.
 */
async function createTables(session: Session, schema: StoreSchema): Promise<void> {
  await session.runInTransaction(`${readCommitted}; ${searchPathSql(schema)}`, tablesSql);
}

/**
 * Locks the version's row until the transaction ends. Returns whether that succeeded and the version is unchanged. Uses
 * a row lock, because distributed engines support few others.
 */
async function lockVersion(lock: Session, schema: StoreSchema, version: number): Promise<boolean> {
  // No timeouts, because building an index may take long. An idle transaction holds no snapshot only under READ
  // COMMITTED.
  await lock.begin(`${readCommitted}; ${searchPathSql(schema)}; SET LOCAL idle_in_transaction_session_timeout = 0;
    ${disableTransactionTimeout(true)}`);
  const [row] = await lock.query(`SELECT version FROM ${schema.versionTable} FOR UPDATE SKIP LOCKED`);
  return row?.[0] === String(version);
}

/** Runs a step under the lock while servers are running, and then changes the version. */
async function runStep(
  { session, lock, schema, steps }: Migrating,
  version: number,
  step: Migration,
  onWaiting?: OnWaiting,
): Promise<void> {
  const { index } = step;
  await runOnline(session, schema, step, onWaiting);
  if (index !== undefined) {
    await session.run(disableTransactionTimeout(false));
    await buildIndex(session, schema, index);
  }
  const next = schemaAfter(steps.slice(0, version));
  await lock.run(`UPDATE ${schema.versionTable} SET version = ${next.version}, oldest_server = ${next.oldestServer}`);
  await lock.commit();
}
