import type { DeletionRecord, MovableStore } from "../../contract/movable-store.ts";
import { StoreOpenError } from "../../contract/store-open-error.ts";
import { batchUuidOf } from "../../records/moved-batch.ts";
import { rethrowing } from "../../records/wrap-errors.ts";
import { quote, toArrayLiteral } from "../delete/array-literals.ts";
import { problemOf } from "../delete/problem.ts";
import { checkDatabase } from "../schema/check-database.ts";
import { disableTransactionTimeout } from "../schema/migrate.ts";
import { searchPathSql, type StoreSchema } from "../schema/store-schema.ts";
import { readCommitted } from "../server/pinned-settings.ts";
import { retryTransientErrors } from "../server/retry-transient-errors.ts";
import { readServerUrl } from "../server/server-url.ts";
import { type Row, Session } from "../server/session.ts";
import { TableLocation } from "../table-location.ts";
import { fetchChunks, unlimitedTimeouts } from "./plant-database.ts";

// Timeout for the table lock, in seconds. While waiting for running transactions, the lock blocks deletions.
const lockTimeoutS = 5;

/**
 * Opens a store in PostgreSQL as the source or target of a move.
 *
 * @param isTarget - whether the moved rows must be durable
 * @throws StoreOpenError if the store is unusable or distributed over workers
 */
export async function openMovablePostgres(url: string, isTarget: boolean): Promise<MovableStore> {
  const { name } = readServerUrl(url);
  const location = new TableLocation();
  const session = new Session(readServerUrl(url), unlimitedTimeouts);
  const fail = (fault: unknown): never => {
    throw fault instanceof StoreOpenError && fault.message.startsWith("cannot use ")
      ? fault
      : new StoreOpenError(`cannot use ${name}: ${problemOf(fault).text}`, { cause: fault });
  };
  try {
    const schema = await retryTransientErrors(session, async () => {
      const found = await location.schemaOn(session);
      await checkDatabase(session, found, isTarget ? "move" : "read");
      await location.refresh(session);
      return found;
    });
    const { moveProblem } = location.tables;
    if (moveProblem !== undefined) throw new StoreOpenError(moveProblem);
    return movableStore(session, schema, name, fail);
  } catch (fault) {
    await session.close();
    return fail(fault);
  }
}

/** Returns the store. Closing the session rolls the transaction back. */
function movableStore(
  session: Session,
  schema: StoreSchema,
  name: string,
  fail: (fault: unknown) => never,
): MovableStore {
  return {
    name,
    begin: (isSnapshot) =>
      session
        .begin(
          `${isSnapshot ? "ISOLATION LEVEL REPEATABLE READ" : readCommitted}; ${searchPathSql(schema)};
           SET LOCAL lock_timeout = '${lockTimeoutS}s'; SET LOCAL statement_timeout = 0;
           SET LOCAL idle_in_transaction_session_timeout = 0; ${disableTransactionTimeout};
           SELECT FROM ${schema.versionTable} FOR UPDATE`,
        )
        .catch(fail),
    commit: () => session.commit().catch(fail),
    rollBack: () => session.rollBack().catch(() => session.discard()),
    run: async (sql, value) => void (await session.query(sql, value === undefined ? [] : [value]).catch(fail)),
    get: async (sql) => (await session.query(sql).catch(fail))[0] ?? [],
    count: async (plants) => {
      const sql = `SELECT (SELECT count(*) FROM ${plants}), count(*), count(idempotency_key) FROM deletions`;
      const [row = []] = await session.query(sql).catch(fail);
      const [plantCount = Number.NaN, records = Number.NaN, keys = Number.NaN] = row.map(Number);
      return { plants: plantCount, records, keys };
    },
    plants: () =>
      rethrowing(
        fail,
        fetchChunks(session, `SELECT id FROM ${schema.movedPlants} ORDER BY id`, ([id]) => BigInt(id ?? "")),
      ),
    records: () => rethrowing(fail, fetchChunks(session, recordsSql, toRecord)),
    insertPlants: async (ids) => {
      const sql = `INSERT INTO ${schema.movedPlants} SELECT pg_catalog.unnest($1::bigint[])`;
      await session.query(sql, [toArrayLiteral(ids)]).catch(fail);
    },
    insertRecords: (records) => insertRecords(session, records).catch(fail),
    [Symbol.asyncDispose]: () => session.close(),
  };
}

const recordsSql = `
  SELECT plant_id, (extract(epoch FROM deleted_at) * 1000000)::bigint, subject, request_id, batch, idempotency_key
  FROM deletions ORDER BY deleted_at, seq`;

const insertSql = `
  INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch, idempotency_key)
  SELECT plant_id, 'epoch'::timestamptz + deleted_at_us * interval '1 microsecond', subject, request_id, batch, NULLIF(key, '')
  FROM unnest($1::bigint[], $2::bigint[], $3::pg_catalog.text[], $4::pg_catalog.text[],
    $5::pg_catalog.text[], $6::pg_catalog.uuid[]) WITH ORDINALITY
    AS moved (plant_id, deleted_at_us, subject, request_id, key, batch, place)
  ORDER BY place`;

async function insertRecords(session: Session, records: readonly DeletionRecord[]): Promise<void> {
  await session.query(insertSql, [
    toArrayLiteral(records.map(({ plantId }) => plantId)),
    toArrayLiteral(records.map(({ deletedAtUs }) => deletedAtUs)),
    toArrayLiteral(records.map(({ subject }) => quote(subject))),
    toArrayLiteral(records.map(({ requestId }) => quote(requestId))),
    // An empty text means that the record has no key.
    toArrayLiteral(records.map(({ idempotencyKey }) => quote(idempotencyKey ?? ""))),
    toArrayLiteral(records.map(({ batch, deletedAtUs }) => batchUuidOf(batch, deletedAtUs))),
  ]);
}

function toRecord([plantId, deletedAtUs, subject, requestId, batch, idempotencyKey]: Row): DeletionRecord {
  return {
    plantId: BigInt(plantId ?? ""),
    deletedAtUs: BigInt(deletedAtUs ?? ""),
    subject: subject ?? "",
    requestId: requestId ?? "",
    batch: batch ?? "",
    idempotencyKey: idempotencyKey ?? undefined,
  };
}
