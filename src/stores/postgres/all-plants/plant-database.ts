import { randomUUID } from "node:crypto";
import { schemaAfter, type Versions } from "../../contract/schema-version.ts";
import { StoreOpenError } from "../../contract/store-open-error.ts";
import { chunkRowsMax } from "../../records/in-chunks.ts";
import { wrapErrors } from "../../records/wrap-errors.ts";
import type { Deletion, DeletionFilter, PlantDatabase } from "../../contract/plant-database.ts";
import { problemOf } from "../delete/problem.ts";
import { asideProblemIn, assertNotAside } from "../schema/aside.ts";
import { checkDatabase } from "../schema/check-database.ts";
import { findSchema, type StoreSchema } from "../schema/store-schema.ts";
import { migrate, type OnWaiting } from "../schema/migrate.ts";
import { type Migration, migrations } from "../schema/migrations.ts";
import type { SessionTimeouts } from "../server/connect.ts";
import { namePrefix } from "../server/named-statements.ts";
import { retryTransientErrors } from "../server/retry-transient-errors.ts";
import { readServerUrl, type Server } from "../server/server-url.ts";
import { type Row, Session } from "../server/session.ts";
import { sqlStateOf } from "../server/sql-state.ts";
import { distribute, refuseDistributedSchema, TableLocation } from "../table-location.ts";
import { startImport } from "./import.ts";

/**
 * Opens a PostgreSQL database for an operator's command. Servers may use the database at the same time. All operations
 * except imports also work on a replica. Operations have no timeouts.
 *
 * @throws StoreOpenError that names the server, and the problem with the server or the schema
 */
export async function openPostgresDatabase(url: string): Promise<PlantDatabase> {
  const server = readServerUrl(url);
  const schema = await withSession(server, undefined, (session) =>
    retryTransientErrors(session, async () => {
      const found = await findSchema(session);
      await checkDatabase(session, found, "read");
      return found;
    }),
  );
  const openSession = (): Session => new Session(server);
  return wrapErrors(server.name, (fault) => problemOf(fault).text, {
    startImport: async (options = {}) => {
      await withSession(server, undefined, (session) =>
        retryTransientErrors(session, () => checkDatabase(session, schema, "write")),
      );
      const running = startImport(openSession(), schema, options);
      return {
        ...running,
        add: (ids) =>
          running.add(ids).catch(async (fault: unknown) => {
            // A move may have set the store aside since the last batch. Then the table does not exist.
            if (sqlStateOf(fault) === "42P01")
              await withSession(server, undefined, (session) => assertNotAside(session, schema));
            throw fault;
          }),
      };
    },
    exportPlants: async function* () {
      const aside = await withSession(server, undefined, (session) => asideProblemIn(session, schema));
      const plants = aside === undefined ? schema.plants : schema.movedPlants;
      yield* readAll(openSession(), `SELECT id FROM ${plants} ORDER BY id`, ([id]) => BigInt(id ?? ""));
    },
    listDeletions: (filter = {}) => readAll(openSession(), deletionsSql(schema, filter), toDeletion),
    // Has nothing to close, because each operation opens and closes its own session.
    [Symbol.asyncDispose]: () => Promise.resolve(),
  });
}

/**
 * No timeouts, for commands. A command may run long, for example if building an index waits for older snapshots.
 * Timeout 0 overrides the role's timeouts, which may be meant for deletions.
 */
export const unlimitedTimeouts: SessionTimeouts = { lockTimeoutMs: 0, statementTimeoutMs: 0, responseTimeoutMs: 0 };

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
  steps: readonly Migration[] = migrations,
): Promise<Versions> {
  const server = readServerUrl(url);
  return await withSession(server, unlimitedTimeouts, async (session) => {
    const schema = await retryTransientErrors(session, () => findSchema(session));
    await retryTransientErrors(session, () => refuseDistributedSchema(session, schema));
    const versions = await migrate({ session, schema, steps }, onWaiting);
    // Does not change the tables and functions of a newer release.
    if (versions.to > schemaAfter(steps).version) return versions;
    await retryTransientErrors(session, () => distribute(session, schema));
    return versions;
  });
}

/** Runs a command's work in a session, and closes the session. @throws StoreOpenError that names the server */
export async function withSession<Result>(
  server: Server,
  timeouts: SessionTimeouts | undefined,
  work: (session: Session, location: TableLocation) => Promise<Result>,
): Promise<Result> {
  const location = new TableLocation();
  const session = new Session(server, timeouts);
  try {
    return await work(session, location);
  } catch (fault) {
    throw new StoreOpenError(`cannot use ${server.name}: ${problemOf(fault).text}`, { cause: fault });
  } finally {
    await session.close();
  }
}

// A cursor's query cannot have parameters. The time is a number, because PostgreSQL does not accept a Date's text
// before year 1 or after year 9999. No record is older than 1970.
function deletionsSql({ deletions }: StoreSchema, { since, plantId }: DeletionFilter): string {
  const sinceSeconds = Math.max(0, since?.getTime() ?? 0) / 1_000;
  const plantCondition = plantId === undefined ? "" : `AND plant_id = '${plantId}'::bigint`;
  return `SELECT plant_id, extract(epoch FROM deleted_at) * 1000, subject, request_id, batch
    FROM ${deletions} WHERE deleted_at >= pg_catalog.to_timestamp(${sinceSeconds}) ${plantCondition} ORDER BY deleted_at, seq`;
}

function toDeletion([id, deletedAtMs, subject, requestId, batch]: Row): Deletion {
  return {
    plantId: BigInt(id ?? ""),
    deletedAt: new Date(Number(deletedAtMs)),
    subject: subject ?? "",
    requestId: requestId ?? "",
    batch: batch ?? "",
  };
}

/** Reads the rows of a query in chunks, from one snapshot. Closes the session, even if the reader stops early. */
async function* readAll<Item>(session: Session, query: string, toItem: (row: Row) => Item): Chunks<Item> {
  try {
    // A transaction reads one snapshot. PgBouncer keeps a transaction on one server connection.
    await session.begin("ISOLATION LEVEL REPEATABLE READ READ ONLY");
    yield* fetchChunks(session, query, toItem);
  } finally {
    await session.close();
  }
}

/** Items that are read in chunks. */
export type Chunks<Item> = AsyncGenerator<readonly Item[]>;

/** Reads the rows of a query in chunks, in the session's transaction. */
export async function* fetchChunks<Item>(session: Session, query: string, toItem: (row: Row) => Item): Chunks<Item> {
  // The name is random, because another client of a pooler may have left a cursor (WITH HOLD) on the connection.
  const cursorName = `"${namePrefix}${randomUUID()}"`;
  await session.run(`DECLARE ${cursorName} NO SCROLL CURSOR FOR ${query}`);
  for (;;) {
    const rows = await session.query(`FETCH ${chunkRowsMax} FROM ${cursorName}`);
    if (rows.length > 0) yield rows.map(toItem);
    if (rows.length < chunkRowsMax) return;
  }
}
