import { setTimeout as sleep } from "node:timers/promises";
import type { DeletionRecord, LockedStore, LockOptions } from "../../contract/locked-store.ts";
import { batchUuidOf } from "../../records/moved-batch.ts";
import { StoreOpenError } from "../../contract/store-open-error.ts";
import { quote, toArrayLiteral } from "../delete/array-literals.ts";
import { problemOf } from "../delete/problem.ts";
import { toId } from "../delete/single-server.ts";
import { checkDatabase } from "../schema/check-database.ts";
import { disableTransactionTimeout } from "../schema/migrate.ts";
import type { StoreSchema } from "../schema/store-schema.ts";
import { readCommitted } from "../server/pinned-settings.ts";
import { retryTransientErrors } from "../server/retry-transient-errors.ts";
import { readServerUrl } from "../server/server-url.ts";
import { type Row, Session } from "../server/session.ts";
import { watchIntervalMs } from "../postgres-store.ts";
import { TableLocation } from "../table-location.ts";
import { copyPlants } from "./copy-plants.ts";
import { type Chunks, fetchChunks, unlimitedTimeouts } from "./plant-database.ts";

// How long to watch for servers, in milliseconds. Every server that uses the store tries to write during this time. If
// a server has committed no deletion since its last check, the next check writes.
const servedWatchMs = 2 * watchIntervalMs + 1_000;

// Interval between searches for waiting sessions, in milliseconds. A server's lock timeout is several times as long.
const watchPollMs = 20;

// Timeout for the table locks, in seconds. While waiting for running transactions, the lock blocks deletions.
const lockTimeoutS = 5;

/**
 * Opens a store in PostgreSQL, and locks its tables until the store is disposed of. Detects a server by its writes,
 * which wait for the lock. So the server's role, application name and pooler do not matter.
 *
 * @throws StoreOpenError if the store is unusable or distributed over workers, or if another session writes to it
 */
export async function openLockedPostgres(url: string, options: LockOptions): Promise<LockedStore> {
  const server = readServerUrl(url);
  const location = new TableLocation();
  const session = new Session(server, unlimitedTimeouts, location.workers);
  try {
    const schema = await retryTransientErrors(session, async () => {
      const found = await location.schemaOn(session);
      await checkDatabase(session, found, options.isReadOnly ? "read" : "write");
      await location.refresh(session);
      return found;
    });
    const { moveProblem } = location.placement;
    if (moveProblem !== undefined) throw new StoreOpenError(moveProblem);
    const [row] = await session.query(identitySql, [schema.name]);
    const identity = String(row?.[0]);
    if (identity === options.refused) throw new StoreOpenError("it is both the source and the target");
    await session.begin(`${readCommitted}; SET LOCAL lock_timeout = '${lockTimeoutS}s';
      SET LOCAL idle_in_transaction_session_timeout = 0; ${disableTransactionTimeout};
      LOCK TABLE ${schema.plants}, ${schema.deletions} IN EXCLUSIVE MODE`);
    await assertUnserved(session, schema, options.watchMs ?? servedWatchMs);
    return lockedStore(session, schema, { name: server.name, identity });
  } catch (fault) {
    await session.close();
    throw new StoreOpenError(`cannot use ${server.name}: ${problemOf(fault).text}`, { cause: fault });
  }
}

// The start time identifies the server, because two servers do not start in the same microsecond.
const identitySql = `
  SELECT pg_catalog.concat_ws(' ', pg_catalog.pg_postmaster_start_time(), oid, $1::pg_catalog.text)
  FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()`;

const waitingSql = `
  SELECT pid, application_name, client_addr
  FROM pg_catalog.pg_locks LEFT JOIN pg_catalog.pg_stat_activity USING (pid)
  WHERE relation = pg_catalog.to_regclass($1) AND mode = 'RowExclusiveLock' AND NOT granted
    AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()) LIMIT 1`;

/** Watches a locked store. @throws StoreOpenError if another session tries to write to the store */
async function assertUnserved(session: Session, { plants }: StoreSchema, watchMs: number): Promise<void> {
  const endMs = performance.now() + watchMs;
  do {
    const [waiting] = await session.query(waitingSql, [plants]);
    if (waiting !== undefined) {
      const [pid, application, address] = waiting;
      const client = `process ${pid}${application ? ` of ${application}` : ""}${address ? ` on ${address}` : ""}`;
      throw new StoreOpenError(`another session writes to it (${client}); stop all servers that use it first`);
    }
    await sleep(watchPollMs);
  } while (performance.now() < endMs);
}

type Names = Pick<LockedStore, "name" | "identity">;

/** Returns the store. Closing the session rolls the transaction back. */
function lockedStore(session: Session, schema: StoreSchema, names: Names): LockedStore {
  const { plants, deletions } = schema;
  const fail = (fault: unknown): never => {
    throw new StoreOpenError(`cannot use ${names.name}: ${problemOf(fault).text}`, { cause: fault });
  };
  async function* readAll<Item>(query: string, toItem: (row: Row) => Item): Chunks<Item> {
    try {
      // Checks again before and after each chunk, because a server may have been started since the store was locked.
      for await (const items of fetchChunks(session, query, toItem)) {
        await assertUnserved(session, schema, 0);
        yield items;
      }
      await assertUnserved(session, schema, 0);
    } catch (fault) {
      fail(fault);
    }
  }
  return {
    ...names,
    count: async () => {
      const sql = `SELECT (SELECT count(*) FROM ${plants}), count(*), count(idempotency_key) FROM ${deletions}`;
      const [row = []] = await session.query(sql).catch(fail);
      const [plantCount = Number.NaN, records = Number.NaN, keys = Number.NaN] = row.map(Number);
      return { plants: plantCount, records, keys };
    },
    plants: () => readAll(`SELECT id FROM ${plants} ORDER BY id`, ([id]) => toId(id)),
    records: () => readAll(recordsSql(schema), toRecord),
    insertPlants: (ids) => copyPlants(session, schema, BigInt64Array.from(ids)).catch(fail),
    insertRecords: (records) => insertRecords(session, schema, records).catch(fail),
    commit: () => session.commit().catch(fail),
    [Symbol.asyncDispose]: () => session.close(),
  };
}

const recordsSql = ({ deletions }: StoreSchema): string => `
  SELECT plant_id, (extract(epoch FROM deleted_at) * 1000000)::bigint, subject, request_id, batch, idempotency_key
  FROM ${deletions} ORDER BY deleted_at, seq`;

async function insertRecords(
  session: Session,
  { deletions }: StoreSchema,
  records: readonly DeletionRecord[],
): Promise<number> {
  const sql = `
    INSERT INTO ${deletions} (plant_id, deleted_at, subject, request_id, batch, idempotency_key)
    SELECT plant_id, 'epoch'::timestamptz + deleted_at_us * interval '1 microsecond', subject, request_id, batch, NULLIF(key, '')
    FROM unnest($1::bigint[], $2::bigint[], $3::pg_catalog.text[], $4::pg_catalog.text[],
      $5::pg_catalog.text[], $6::pg_catalog.uuid[]) WITH ORDINALITY
      AS moved (plant_id, deleted_at_us, subject, request_id, key, batch, place)
    ORDER BY place`;
  return await session.change(sql, [
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
