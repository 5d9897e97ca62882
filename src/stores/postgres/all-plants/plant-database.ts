import { randomUUID } from "node:crypto";
import {
  type Deletion,
  type DeletionFilter,
  type ImportCounts,
  type PlantDatabase,
  type PlantImport,
  maxChunkRows,
  wrapErrors,
} from "../../contract/plant-database.ts";
import { schemaAfter, type Versions } from "../../contract/schema-version.ts";
import { StoreOpenError } from "../../contract/store-options.ts";
import { cannotUse, problemOf, verdictOn } from "../delete/fault-table.ts";
import { deleteTimeouts, emitMessageSql, parseIdArray } from "../delete/store-tables.ts";
import { asideProblemIn, assertNotAside, checkDatabase } from "../schema/check-database.ts";
import { migrate, type OnWaiting } from "../schema/migrate.ts";
import { findSchema, type PostgresMigration, migrations, type StoreSchema } from "../schema/store-schema.ts";
import { sqlStateOf } from "../server/connect.ts";
import { readCommitted } from "../server/pinned-settings.ts";
import { readServerUrl, type PostgresServer } from "../server/server-url.ts";
import { namePrefix, retryTransientErrors, type TextRow, Session, type SessionTimeouts } from "../server/session.ts";
import { distribute, isDistributed, TableLocation } from "../table-location.ts";

// Maximum number of ids per transaction. Large enough for a low commit cost, but small enough to hold locks briefly.
const maxImportBatch = 10_000;

// How long a check is repeated while other transactions hold locks, in milliseconds. A migration holds locks for 0.1 s.
// A server is not ready if other transactions hold locks for ten seconds.
const busyTimeoutMs = 2_000;

/**
 * Opens a PostgreSQL database for an operator's command. Servers may use the database at the same time. All operations
 * except imports also work on a replica. Operations have no timeouts.
 *
 * @throws StoreOpenError that names the server, and the problem with the server or the schema
 */
export async function openPostgresDatabase(url: string): Promise<PlantDatabase> {
  const server = readServerUrl(url);
  const inSession = <Result>(work: (session: Session) => Promise<Result>): Promise<Result> =>
    withSession(server, (session) => retryTransientErrors(session, () => work(session)));
  const schema = await inSession(async (session) => {
    const found = await findSchema(session);
    await checkDatabase(session, found, "read");
    return found;
  });
  return wrapErrors(server.name, (fault) => problemOf(fault).text, {
    startImport: async ({ restore = false } = {}) => {
      await inSession((session) => checkDatabase(session, schema, "write"));
      const session = new Session(server);
      // Whether a batch contained an existing id. Batches before it take two thirds of the time without ON CONFLICT.
      let skipsExisting = false;
      const add: PlantImport["add"] = (ids) =>
        addPlants(session, schema, ids, { restore, skipsExisting }).catch(async (fault: unknown) => {
          const state = sqlStateOf(fault);
          // A move may have set the store aside since the last batch. Then the table does not exist.
          if (state === "42P01") await inSession((other) => assertNotAside(other, schema));
          if (state !== "23505" || skipsExisting) throw fault;
          skipsExisting = true;
          return await add(ids);
        });
      return { maxBatch: maxImportBatch, add, [Symbol.asyncDispose]: () => session.close() };
    },
    exportPlants: async function* () {
      const aside = await inSession((session) => asideProblemIn(session, schema));
      const plants = aside === undefined ? schema.plants : schema.movedPlants;
      yield* readAll(server, `SELECT id FROM ${plants} ORDER BY id`, ([id]) => BigInt(id ?? ""));
    },
    listDeletions: (filter = {}) => readAll(server, deletionsSql(schema, filter), toDeletion),
    // Has nothing to close, because each operation opens and closes its own session.
    [Symbol.asyncDispose]: () => Promise.resolve(),
  });
}

/**
 * Migrates a PostgreSQL database to this release's schema, and returns the versions before and after.
 *
 * @param onWaiting - called every few seconds while the migration waits, with the reason
 * @param steps - the migration steps from version 1
 * @throws StoreOpenError that names the server, and the problem with the server or the schema
 */
export async function migratePostgres(
  url: string,
  onWaiting?: OnWaiting,
  steps: readonly PostgresMigration[] = migrations,
): Promise<Versions> {
  return await withSession(readServerUrl(url), async (session) => {
    const schema = await retryTransientErrors(session, () => findSchema(session));
    // Refuses tables that an operator has distributed, before the schema changes.
    await retryTransientErrors(session, () => isDistributed(session, schema));
    const versions = await migrate({ session, schema, steps }, onWaiting);
    // Does not change the tables and functions of a newer release.
    if (versions.to > schemaAfter(steps).version) return versions;
    await retryTransientErrors(session, () => distribute(session, schema));
    return versions;
  });
}

/**
 * Checks whether a server could use a database: its schema, settings, privileges and a write. Changes no data, because
 * the write rolls back to a savepoint. The final commit waits for the disk and for synchronous standbys.
 *
 * @returns warnings for the operator
 * @throws StoreOpenError that names the server and the problem
 */
export async function checkPostgresStore(url: string): Promise<readonly string[]> {
  const server = readServerUrl(url);
  const location = new TableLocation();
  const check = async (session: Session): Promise<readonly string[]> => {
    const tables = await location.check(session);
    await tables.checkWrite(session);
    return (await tables.findWarnings?.(session)) ?? [];
  };
  // Serialization failures, deadlocks and timeouts for locks.
  const transient = /^(?:40001|40P01|55P03|57014)$/;
  const checkRepeatedly = (session: Session): Promise<readonly string[]> =>
    retryTransientErrors(session, () => check(session), transient, busyTimeoutMs);
  // Uses the same timeouts as a server. The session's timeouts override the URL's timeouts.
  const warnings = await withSession(server, checkRepeatedly, deleteTimeouts);
  return warnings.map((warning) => `${server.name} ${warning}`);
}

/** Runs a command's work in a session, and closes the session. @throws StoreOpenError that names the server */
async function withSession<Result>(
  server: PostgresServer,
  work: (session: Session) => Promise<Result>,
  timeouts?: SessionTimeouts,
): Promise<Result> {
  const session = new Session(server, timeouts);
  try {
    return await work(session);
  } catch (fault) {
    throw cannotUse(server.name, fault);
  } finally {
    await session.close();
  }
}

/**
 * Adds plants in one transaction, while servers delete plants. Sorts the ids, so that adjacent index entries are written
 * together, and two imports do not deadlock. Without `skipsExisting`, fails (23505) if a plant exists.
 */
export async function addPlants(
  session: Session,
  { plants, deletions }: StoreSchema,
  ids: readonly bigint[] | BigInt64Array,
  { restore, skipsExisting }: { readonly restore: boolean; readonly skipsExisting: boolean },
): Promise<ImportCounts> {
  const lines = new BigInt64Array(ids).toSorted();
  // The inner SELECT hides the number of ids from the planner, so that the planner uses the index instead of reading all
  // records.
  const findDeletedSql = `
    SELECT DISTINCT plant_id
    FROM pg_catalog.unnest((SELECT $1::bigint[])) AS line (id) JOIN ${deletions} ON plant_id = id`;
  const findDeleted = async (array: string): Promise<ReadonlySet<string>> =>
    new Set(restore ? [] : (await session.query(findDeletedSql, [array])).map(([id]) => id ?? ""));
  // An interrupted import may be run again.
  const onConflict = skipsExisting ? "ON CONFLICT DO NOTHING" : "";
  const insertSql = `
    WITH added AS (INSERT INTO ${plants} SELECT pg_catalog.unnest($1::bigint[]) ${onConflict} RETURNING id)
    SELECT pg_catalog.array_agg(id) FROM added`;
  return await retryTransientErrors(session, async () => {
    await session.begin(readCommitted);
    const before = await findDeleted(`{${lines.join()}}`);
    const undeleted = before.size === 0 ? lines : lines.filter((id) => !before.has(String(id)));
    const [row] = await session.query(insertSql, [`{${undeleted.join()}}`]);
    const inserted = parseIdArray(row?.[0]);
    // The INSERT waits for a deletion in progress, and then inserts the id. So a second query reads the records with a
    // new snapshot. The query contains only the added ids. Other ids may belong to restored plants, which exist although
    // they have a record.
    const meanwhile = [...(await findDeleted(`{${inserted.join()}}`))];
    if (meanwhile.length > 0)
      await session.query(`DELETE FROM ${plants} WHERE id = ANY($1::bigint[])`, [`{${meanwhile.join()}}`]);
    // Existing plants may be from an import that did not wait for the standbys. Committing a message waits for them.
    if (inserted.length === 0)
      await session.query(
        `${emitMessageSql} WHERE pg_catalog.current_setting('synchronous_standby_names', true) <> ''`,
      );
    // If a pooler has sent an extra response, the records above may be those of an earlier query.
    await session.runChecked("SELECT");
    await session.commit().catch((cause: unknown) => {
      if (verdictOn(cause) !== "unknown") throw cause;
      // Does not retry. If the batch was committed, a retry would restore plants that were deleted after the commit.
      const advice = restore ? "restored; check which of its plants exist" : "imported; run the same import again";
      const doubt = `it is unknown whether the last batch was ${advice}`;
      throw new StoreOpenError(`${problemOf(cause).text}: ${doubt}`, { cause });
    });
    const skipped = new Set([...before, ...meanwhile]);
    const deleted = skipped.size === 0 ? 0 : lines.filter((id) => skipped.has(String(id))).length;
    const added = inserted.length - meanwhile.length;
    return { added, deleted, present: lines.length - added - deleted };
  });
}

/**
 * Returns the query for deletion records, oldest first. A cursor's query cannot have parameters. The time is a number,
 * because PostgreSQL does not accept a Date's text before year 1 or after year 9999. No record is older than 1970.
 */
export function deletionsSql({ deletions }: StoreSchema, { since, plantId }: DeletionFilter = {}): string {
  const sinceSeconds = Math.max(0, since?.getTime() ?? 0) / 1_000;
  const plantCondition = plantId === undefined ? "" : `AND plant_id = '${plantId}'::bigint`;
  return `SELECT plant_id, (extract(epoch FROM deleted_at) * 1000000)::bigint, subject, request_id, batch, idempotency_key
    FROM ${deletions} WHERE deleted_at >= pg_catalog.to_timestamp(${sinceSeconds}) ${plantCondition} ORDER BY deleted_at, seq`;
}

/** Returns the record in a row of {@link deletionsSql}. */
export function toDeletion([id, deletedAtUs, subject, requestId, batch, idempotencyKey]: TextRow): Deletion {
  return {
    plantId: BigInt(id ?? ""),
    deletedAtUs: BigInt(deletedAtUs ?? ""),
    subject: subject ?? "",
    requestId: requestId ?? "",
    batch: batch ?? "",
    idempotencyKey: idempotencyKey ?? undefined,
  };
}

/** Reads the rows of a query in chunks, from one snapshot. Closes its session, even if the reader stops early. */
async function* readAll<Item>(server: PostgresServer, query: string, toItem: (row: TextRow) => Item): Chunks<Item> {
  const session = new Session(server);
  try {
    // A transaction reads one snapshot. PgBouncer keeps a transaction on one server connection.
    await session.begin("ISOLATION LEVEL REPEATABLE READ READ ONLY");
    yield* fetchChunks(session, query, toItem);
    await session.commit();
  } finally {
    await session.close();
  }
}

type Chunks<Item> = AsyncGenerator<readonly Item[]>;

/** Reads the rows of a query in chunks, in the session's transaction. */
export async function* fetchChunks<Item>(
  session: Session,
  query: string,
  toItem: (row: TextRow) => Item,
): Chunks<Item> {
  // The name is random, because another client of a pooler may have left a cursor (WITH HOLD) on the connection.
  const cursorName = `"${namePrefix}${randomUUID()}"`;
  await session.run(`DECLARE ${cursorName} NO SCROLL CURSOR FOR ${query}`);
  for (;;) {
    const rows = await session.query(`FETCH ${maxChunkRows} FROM ${cursorName}`);
    if (rows.length > 0) yield rows.map(toItem);
    if (rows.length < maxChunkRows) return;
  }
}
