import { existsSync, realpathSync } from "node:fs";
import type { DatabaseSync, SQLOutputValue } from "node:sqlite";
import { inChunks } from "../records/in-chunks.ts";
import type { DeletionRecord, LockedStore } from "../contract/locked-store.ts";
import { batchNumberOf } from "../records/moved-batch.ts";
import { rethrowing } from "../records/wrap-errors.ts";
import { StoreOpenError } from "../contract/store-open-error.ts";
import { idsIn, openDatabase, toBigInt } from "./database.ts";
import { isLocked, storeErrorOf } from "./problem.ts";

/**
 * Opens and locks a store's file. Until the result is disposed of, other processes can neither read nor write the file.
 *
 * @param refused - the identity of a store that must not be opened
 * @throws StoreOpenError if the file cannot be opened, or another process, such as a server, has the file open
 */
export function openLockedSqlite(file: string, refused: string | undefined): LockedStore {
  // Opening the source a second time would wait for the source's lock.
  if (existsSync(file) && realpathSync(file) === refused)
    throw new StoreOpenError(`${file} is both the source and the target`);
  const db = openDatabase({ file });
  try {
    // Fails while another connection is open, because only the last connection can change the journal mode from WAL.
    // The next server turns WAL mode on again. In mode DELETE, the journal contains only pages that existed before the
    // transaction. With EXTRA, a commit also syncs the journal's removal.
    db.exec("PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA; BEGIN EXCLUSIVE");
    return lockedStore(db, file, realpathSync(file));
  } catch (fault) {
    db.close();
    if (!isLocked(fault)) throw storeErrorOf(`cannot open ${file}`, fault);
    throw new StoreOpenError(`another process has ${file} open; stop the server first`, { cause: fault });
  }
}

// SQLite builds an index for the join in a temporary file. A key is valid only while its record exists.
const recordsSql = `
  SELECT plant_id, deleted_at, subject, request_id, batch, idempotency_key
  FROM deletions LEFT JOIN idempotency_keys USING (seq, deleted_at) ORDER BY deletions.seq`;

const countSql = `
  SELECT (SELECT count(*) FROM plants) AS plants, (SELECT count(*) FROM deletions) AS records,
    (SELECT count(*) FROM idempotency_keys JOIN deletions USING (seq, deleted_at)) AS keys`;

function lockedStore(db: DatabaseSync, name: string, identity: string): LockedStore {
  const fail = (fault: unknown): never => {
    throw storeErrorOf(`cannot use ${name}`, fault);
  };
  const run = <Result>(work: () => Result): Result => {
    try {
      return work();
    } catch (fault) {
      return fail(fault);
    }
  };
  return {
    name,
    identity,
    count: async () => {
      const row = run(() => db.prepare(countSql).get());
      return { plants: Number(row?.["plants"]), records: Number(row?.["records"]), keys: Number(row?.["keys"]) };
    },
    plants: () => rethrowing(fail, idsIn(db)),
    records: () => rethrowing(fail, inChunks(db.prepare(recordsSql).iterate(), toRecord)),
    insertPlants: async (ids) =>
      run(() => {
        const insert = db.prepare("INSERT INTO plants (id) VALUES (?)");
        return ids.filter((id) => insert.run(id).changes === 1n).length;
      }),
    insertRecords: async (records) => run(() => records.filter(prepareInsertRecord(db)).length),
    commit: async () => run(() => db.exec("COMMIT")),
    // Closing the connection rolls the transaction back.
    [Symbol.asyncDispose]: async () => db.close(),
  };
}

/** Prepares a function that inserts a record and its key. The function returns whether both were inserted. */
function prepareInsertRecord(db: DatabaseSync): (record: DeletionRecord) => boolean {
  const insert = db.prepare(
    "INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch) VALUES (?, ?, ?, ?, ?)",
  );
  // Replaces a row with the same key that retention may have left, see migrations.ts.
  const insertKey = db.prepare("INSERT OR REPLACE INTO idempotency_keys VALUES (?, last_insert_rowid(), ?)");
  return ({ plantId, deletedAtUs, subject, requestId, batch, idempotencyKey }) => {
    const deletedAtMs = deletedAtUs / usPerMs;
    if (insert.run(plantId, deletedAtMs, subject, requestId, batchNumberOf(batch)).changes === 0n) return false;
    return idempotencyKey === undefined || insertKey.run(idempotencyKey, deletedAtMs).changes === 1n;
  };
}

function toRecord(row: Record<string, SQLOutputValue>): DeletionRecord {
  return {
    plantId: toBigInt(row["plant_id"]),
    deletedAtUs: toBigInt(row["deleted_at"]) * usPerMs,
    subject: String(row["subject"]),
    requestId: String(row["request_id"]),
    batch: String(row["batch"]),
    idempotencyKey: row["idempotency_key"] === null ? undefined : String(row["idempotency_key"]),
  };
}

const usPerMs = 1_000n;
