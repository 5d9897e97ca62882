import type { DatabaseSync, SQLOutputValue } from "node:sqlite";
import type { DeletionRecord, MovableStore } from "../contract/movable-store.ts";
import { inChunks } from "../records/in-chunks.ts";
import { batchNumberOf } from "../records/moved-batch.ts";
import { rethrowing } from "../records/wrap-errors.ts";
import { idsIn, openDatabase, toBigInt } from "./database.ts";
import { claimFile } from "./open-once.ts";
import { storeErrorOf } from "./problem.ts";
import { beginWrite } from "./transaction.ts";

/** Opens a store's file as the source or target of a move. @throws StoreOpenError if the file cannot be opened */
export function openMovableSqlite(file: string): MovableStore {
  const opened = new DisposableStack();
  const db = opened.use(openDatabase({ file, isAside: true }));
  // The same file may be opened as the other store of the move, which must not repair the log again.
  opened.use(claimFile(file));
  return movableStore(db, db.location() ?? file, opened);
}

// SQLite builds an index for the join in a temporary file. A key is valid only while its record exists.
const recordsSql = `
  SELECT plant_id, deleted_at, subject, request_id, batch, idempotency_key
  FROM deletions LEFT JOIN idempotency_keys USING (seq, deleted_at) ORDER BY deletions.seq`;

function movableStore(db: DatabaseSync, name: string, opened: Disposable): MovableStore {
  const fail = (fault: unknown): never => {
    throw storeErrorOf(`cannot use ${name}`, fault);
  };
  const run = async <Result>(work: () => Result): Promise<Result> => {
    try {
      return work();
    } catch (fault) {
      return fail(fault);
    }
  };
  return {
    name,
    // A write transaction reads one snapshot.
    begin: () => run(() => beginWrite(db)),
    commit: () => run(() => db.exec("COMMIT")),
    rollBack: () => run(() => db.isTransaction && db.exec("ROLLBACK")).then(() => undefined),
    run: (sql, value) => run(() => void db.prepare(sql).run(value === undefined ? {} : { $1: value })),
    get: (sql) =>
      run(() => Object.values(db.prepare(sql).get() ?? {}).map((value) => (value === null ? null : String(value)))),
    count: (plants) =>
      run(() => {
        const row = db
          .prepare(
            `SELECT (SELECT count(*) FROM ${plants}) AS plants, (SELECT count(*) FROM deletions) AS records,
               (SELECT count(*) FROM idempotency_keys JOIN deletions USING (seq, deleted_at)) AS keys`,
          )
          .get();
        return { plants: Number(row?.["plants"]), records: Number(row?.["records"]), keys: Number(row?.["keys"]) };
      }),
    plants: () => rethrowing(fail, idsIn(db, "moved_plants")),
    records: () => rethrowing(fail, inChunks(db.prepare(recordsSql).iterate(), toRecord)),
    insertPlants: (ids) =>
      run(() => {
        const insert = db.prepare("INSERT INTO moved_plants (id) VALUES (?)");
        for (const id of ids) insert.run(id);
      }),
    insertRecords: (records) => run(() => records.forEach(prepareInsertRecord(db))),
    // Closing the connection rolls the transaction back.
    [Symbol.asyncDispose]: async () => opened[Symbol.dispose](),
  };
}

/** Prepares a function that inserts a record and its key. */
function prepareInsertRecord(db: DatabaseSync): (record: DeletionRecord) => void {
  const insert = db.prepare(
    "INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch) VALUES (?, ?, ?, ?, ?)",
  );
  // Replaces a row with the same key that retention may have left, see migrations.ts.
  const insertKey = db.prepare("INSERT OR REPLACE INTO idempotency_keys VALUES (?, last_insert_rowid(), ?)");
  return ({ plantId, deletedAtUs, subject, requestId, batch, idempotencyKey }) => {
    const deletedAtMs = deletedAtUs / usPerMs;
    insert.run(plantId, deletedAtMs, subject, requestId, batchNumberOf(batch));
    if (idempotencyKey !== undefined) insertKey.run(idempotencyKey, deletedAtMs);
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
