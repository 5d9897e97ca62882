import type { MovableStore } from "../../contract/movable-store.ts";
import { StoreOpenError } from "../../contract/store-options.ts";
import { type Deletion, rethrowing } from "../../contract/plant-database.ts";
import { cannotUse } from "../delete/fault-table.ts";
import { toArrayLiteral } from "../delete/store-tables.ts";
import { checkDatabase } from "../schema/check-database.ts";
import { disableTransactionTimeout } from "../schema/migrate.ts";
import { searchPathSql } from "../schema/store-schema.ts";
import { readCommitted } from "../server/pinned-settings.ts";
import { readServerUrl } from "../server/server-url.ts";
import { retryTransientErrors, type TextRow, Session } from "../server/session.ts";
import { TableLocation } from "../table-location.ts";
import { deletionsSql, fetchChunks, toDeletion } from "./plant-database.ts";

/**
 * Opens a store in PostgreSQL as the source or target of a move.
 *
 * @param isTarget - whether the moved rows must be durable
 * @throws StoreOpenError if the store is unusable or distributed over workers
 */
export async function openMovablePostgres(url: string, isTarget: boolean): Promise<MovableStore> {
  const server = readServerUrl(url);
  const session = new Session(server);
  const fail = (fault: unknown): never => {
    throw cannotUse(server.name, fault);
  };
  const opening = retryTransientErrors(session, async () => {
    const location = new TableLocation();
    const schema = await location.schemaOn(session);
    await checkDatabase(session, schema, isTarget ? "move" : "read");
    if (!(await location.refresh(session)).isDistributed) return schema;
    throw new StoreOpenError(
      'stores on Citus cannot be moved: move to a server without Citus, create the extension, and run "plantstore migrate"',
    );
  });
  const schema = await opening.catch(async (fault: unknown) => {
    await session.close();
    return fail(fault);
  });
  const query = (sql: string, values: readonly unknown[] = []): Promise<readonly TextRow[]> =>
    session.query(sql, values).catch(fail);
  // The table lock has a timeout of 5 s. While waiting for running transactions, the lock blocks deletions.
  const settings = `${searchPathSql(schema)}; SET LOCAL lock_timeout = '5s'; SET LOCAL statement_timeout = 0;
    SET LOCAL idle_in_transaction_session_timeout = 0; ${disableTransactionTimeout};
    SELECT FROM ${schema.versionTable} FOR UPDATE`;
  return {
    name: server.name,
    countKeysSql: "SELECT count(idempotency_key) FROM deletions",
    begin: (isSnapshot) =>
      session.begin(`${isSnapshot ? "ISOLATION LEVEL REPEATABLE READ" : readCommitted}; ${settings}`).catch(fail),
    commit: () => session.commit().catch(fail),
    rollBack: () => session.rollBack().catch(() => session.discard()),
    run: async (sql, value) => void (await query(sql, value === undefined ? [] : [value])),
    get: async (sql) => (await query(sql))[0] ?? [],
    plants: () =>
      rethrowing(
        fail,
        fetchChunks(session, "SELECT id FROM moved_plants ORDER BY id", ([id]) => BigInt(id ?? "")),
      ),
    records: () => rethrowing(fail, fetchChunks(session, deletionsSql(schema), toDeletion)),
    insertPlants: async (ids) => {
      await query("INSERT INTO moved_plants SELECT pg_catalog.unnest($1::bigint[])", [toArrayLiteral(ids)]);
    },
    insertRecords: async (records) => {
      const columns = recordColumns.map((toText) => toArrayLiteral(records.map(toText)));
      await query(insertSql, columns);
    },
    // Rolls the transaction back.
    [Symbol.asyncDispose]: () => session.close(),
  };
}

const insertSql = `
  INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch, idempotency_key)
  SELECT plant_id, 'epoch'::timestamptz + deleted_at_us * interval '1 microsecond', subject, request_id, batch, NULLIF(key, '')
  FROM unnest($1::bigint[], $2::bigint[], $3::pg_catalog.text[], $4::pg_catalog.text[],
    $5::pg_catalog.text[], $6::pg_catalog.uuid[]) WITH ORDINALITY
    AS moved (plant_id, deleted_at_us, subject, request_id, key, batch, place)
  ORDER BY place`;

const recordColumns: readonly ((record: Deletion) => string | bigint)[] = [
  ({ plantId }) => plantId,
  ({ deletedAtUs }) => deletedAtUs,
  ({ subject }) => subject,
  ({ requestId }) => requestId,
  // An empty text means that the record has no key.
  ({ idempotencyKey }) => idempotencyKey ?? "",
  // A number from SQLite becomes the low bits of a UUID.
  ({ batch }) => (batch.includes("-") ? batch : BigInt(batch).toString(16).padStart(32, "0")),
];
