import { setTimeout as sleep } from "node:timers/promises";
import { demandUsableSchema, schemaAfter, type SchemaVersion } from "../../schema-version.ts";
import { isCitus } from "../citus/distribute.ts";
import { readCommitted } from "../server/pinned-settings.ts";
import { repeatWhileRefused } from "../server/repeat-while-refused.ts";
import type { Session } from "../server/session.ts";
import { buildIndex, endTransactionTimeout, type OnWaiting, runBesideServers, runLocking } from "./beside-servers.ts";
import { isPostgres } from "./by-day.ts";
import { checkSettings, versionOf } from "./check-database.ts";
import type { Migration } from "./migrations.ts";
import { searchPathSql, type StoreSchema } from "./store-schema.ts";
import { tablesSql } from "./tables.ts";

// Milliseconds between two tries to become the process that migrates. Waiting in a statement instead would keep a
// snapshot, and the build of an index would wait for that in turn.
const lockIntervalMs = 100;

const allTablesSql = "SELECT FROM pg_catalog.pg_publication WHERE puballtables";

/** The version of the schema before a migration, and after it. */
export interface Versions {
  readonly from: number;
  /** Greater than that of the release if the schema is of a newer one and was left as it is. */
  readonly to: number;
}

/**
 * Migrates the database to the newest schema, step by step, and returns the versions before and after. A step that
 * fails leaves the version as it was, and is run again by the next attempt. Of several processes that migrate at once,
 * one does it and the others wait. A newer schema that the release can use is left as it is.
 *
 * @throws StoreOpenError when the release cannot use the schema, or the database is not fit for a store
 */
export async function migrate(sessions: Migrating, onWaiting?: OnWaiting): Promise<Versions> {
  const { session, schema, steps } = sessions;
  const from = await repeatWhileRefused(session, async () => {
    await checkSettings(session, schema);
    return await versionOf(session, schema);
  });
  while (await repeatWhileRefused(session, () => takeNextStep(sessions, onWaiting)));
  const to = await repeatWhileRefused(session, async () => {
    await checkSettings(session, schema);
    return await versionOf(session, schema);
  });
  demandUsableSchema(to, schemaAfter(steps).version);
  return { from: from.version, to: to.version };
}

/** What is migrated. */
export interface Migrating {
  /** Has no time-outs. */
  readonly session: Session;
  /** A second such session, which keeps the other processes waiting; it is disconnected at the end. */
  readonly lock: Session;
  readonly schema: StoreSchema;
  /** The steps from version 1. */
  readonly steps: readonly Migration[];
}

/** Takes the next step, or lets another process take it, and returns whether there may be more. */
async function takeNextStep(migrating: Migrating, onWaiting?: OnWaiting): Promise<boolean> {
  const { session, lock, schema, steps } = migrating;
  const { version } = await versionOf(session, schema);
  if (version >= schemaAfter(steps).version) return false;
  const step = steps[version - 1];
  try {
    if (step === undefined) await createTables(session, schema);
    else if (await lockOthersOut(lock, schema, version)) await takeStep(migrating, { version, step, onWaiting });
    else await sleep(lockIntervalMs);
  } catch (fault) {
    session.discard();
    // Another process has taken the step, or the server has committed it without knowing.
    if ((await versionOf(session, schema)).version === version) throw fault;
  } finally {
    // Lets the other processes go on.
    lock.discard();
  }
  return true;
}

/**
 * Creates the tables, before there is anything to lock: of several processes, all but one find them created. Records are
 * divided by day where the server is PostgreSQL itself; Citus divides them when it spreads them.
 */
async function createTables(session: Session, schema: StoreSchema): Promise<void> {
  const isByDay = (await isPostgres(session)) && !(await isCitus(session));
  await session.runInTransaction(`${readCommitted}; ${searchPathSql(schema)}`, tablesSql(isByDay));
}

/**
 * Locks the row of the version until the end of the transaction. Returns whether that succeeded and the version is this
 * one. It is a row, because distributed engines have few other locks.
 */
async function lockOthersOut(lock: Session, schema: StoreSchema, version: number): Promise<boolean> {
  // No time-outs, because an index may take long to build. Only under READ COMMITTED, an idle transaction has no
  // snapshot.
  await lock.begin(`${readCommitted}; ${searchPathSql(schema)}; SET LOCAL idle_in_transaction_session_timeout = 0;
    ${endTransactionTimeout(true)}`);
  const [row] = await lock.query(`SELECT version FROM ${schema.versionTable} FOR UPDATE SKIP LOCKED`);
  return row?.[0] === String(version);
}

interface StepToTake {
  readonly version: number;
  readonly step: Migration;
  readonly onWaiting: OnWaiting | undefined;
}

/** Takes a step under the lock, beside servers, and changes the version after that. */
async function takeStep(
  { session, lock, schema, steps }: Migrating,
  { version, step, onWaiting }: StepToTake,
): Promise<void> {
  const { table, index } = step;
  await runBesideServers(session, () => runLocking(session, schema, step.sql), { schema, table }, onWaiting);
  if (index !== undefined) {
    await session.run(endTransactionTimeout(false));
    await buildIndex(session, schema, index);
  }
  await lock.run(await setVersion(session, schema, schemaAfter(steps.slice(0, version))));
  await lock.commit();
}

/**
 * Returns the statements that change the version. Where a publication has all tables, PostgreSQL updates none without a
 * key or an identity.
 */
async function setVersion(
  session: Session,
  { versionTable }: StoreSchema,
  { version, oldestServer }: SchemaVersion,
): Promise<string> {
  const publishes = (await isPostgres(session)) && (await session.query(allTablesSql)).length > 0;
  const identity = publishes ? `ALTER TABLE ${versionTable} REPLICA IDENTITY FULL; ` : "";
  return `${identity}UPDATE ${versionTable} SET version = ${version}, oldest_server = ${oldestServer}`;
}
