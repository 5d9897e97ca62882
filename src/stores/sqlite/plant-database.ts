import { existsSync, realpathSync, statfsSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync, type SQLOutputValue } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import type { MovableStore } from "../contract/movable-store.ts";
import {
  type Deletion,
  type DeletionFilter,
  type ImportOptions,
  inChunks,
  type PlantDatabase,
  type PlantImport,
  rethrowing,
  wrapErrors,
} from "../contract/plant-database.ts";
import type { Versions } from "../contract/schema-version.ts";
import { StoreOpenError } from "../contract/store-options.ts";
import { idsIn, openDatabase, readDatabaseFile, toBigInt } from "./database.ts";
import { assertSingleName, claimFile, usesLog } from "./file-names.ts";
import { asideProblemIn, assertNotAside, assertUsable, schemaProblemOf, versionOf } from "./migrate.ts";
import { assertUndamaged, codeOf, fileProblemOf, storeErrorOf } from "./problem.ts";
import { beginWrite, lockGapMs, runInTransaction } from "./transaction.ts";

/** Creates or migrates a store's file, and returns the versions before and after. @throws StoreOpenError */
export function migrateSqlite(file: string): Versions {
  let migratedFrom: number | undefined;
  using db = openDatabase({ file, migrates: true }, (from) => (migratedFrom = from));
  const { version: to } = versionOf(db);
  return { from: migratedFrom ?? to, to };
}

// Timeout for the lock, in milliseconds. A server's or an import's batch holds the lock for a fraction of this time.
const checkLockTimeoutMs = 1_000;

// Minimum free space for a server, in bytes. A commit with a few deletions writes about 64 KiB to a new log.
const minFreeBytes = 64 * 1_024;

// SQLITE_READONLY_ROLLBACK (sqlite.org/rescode.html).
const readOnlyRollback = 776;

/**
 * Checks whether a server could use a store's file. Checks the schema, the pages and the free space. Also takes the
 * write lock, and rolls the transaction back. Never creates, writes or checkpoints a file.
 *
 * @returns warnings for the operator
 * @throws StoreOpenError that names the file and the problem
 */
export function checkSqliteStore(file: string): readonly string[] {
  try {
    readDatabaseFile(file, (db, path) => {
      assertSingleName(path);
      assertUsable(db);
      assertUndamaged(db);
      assertNotAside(db);
      assertWritable(realpathSync(path));
    });
  } catch (fault) {
    if (!(fault instanceof StoreOpenError) || codeOf(fault.cause) !== readOnlyRollback) throw fault;
    return [`${file} has an interrupted transaction, which the next start rolls back; the file was not checked`];
  }
  return [];
}

/** Call this while a read-only connection has read the file, so that closing the writable one does not copy the log. */
function assertWritable(path: string): void {
  const { bavail, bfree, bsize } = statfsSync(dirname(path));
  // Only root may use a file system's reserved blocks.
  const freeBytes = (process.getuid?.() === 0 ? bfree : bavail) * bsize;
  if (freeBytes < minFreeBytes) throw new StoreOpenError("the disk is full");
  // If a file in WAL mode has no log, no process has opened it by this name. Opening the file would create the log.
  if (!existsSync(`${path}-wal`) && usesLog(path)) return;
  using writer = new DatabaseSync(path);
  beginWrite(writer, checkLockTimeoutMs);
  writer.exec("ROLLBACK");
}

/** Opens a file that this process must not repair again while it is open. */
function openClaimed(file: string): { readonly db: DatabaseSync; readonly close: () => Promise<void> } {
  const opened = new DisposableStack();
  const db = opened.use(openDatabase({ file, isAside: true }));
  opened.use(claimFile(file));
  // Closing the connection rolls a transaction back.
  return { db, close: async () => opened.dispose() };
}

/** Opens a store's file for commands, even while a server uses it. @throws StoreOpenError if it is not a store */
export async function openSqliteDatabase(file: string): Promise<PlantDatabase> {
  const { db, close } = openClaimed(file);
  return wrapErrors(file, (fault) => (schemaProblemOf(db) ?? fileProblemOf(fault)).text, {
    startImport: async (options = {}) => startImport(openDatabase({ file }), options),
    exportPlants: async function* () {
      yield* idsIn(db, asideProblemIn(db) === undefined ? "plants" : "moved_plants");
    },
    listDeletions: async function* (filter) {
      yield* recordsIn(db, "deletions", filter);
    },
    [Symbol.asyncDispose]: close,
  });
}

// SQLite builds an index for the join in a temporary file. A key is valid only while its record exists.
const keyedRecords = "deletions LEFT JOIN idempotency_keys USING (seq, deleted_at)";

/** Lists records, by default oldest first. @param from - a table with the records, such as {@link keyedRecords} */
function recordsIn(
  db: DatabaseSync,
  from: string,
  { since, plantId }: DeletionFilter = {},
  order = "deleted_at, seq",
): Iterable<readonly Deletion[]> {
  // Reads all records even for a single plant. An index by plant would make every deletion more expensive.
  const rows = db.prepare(
    `SELECT * FROM ${from} WHERE deleted_at >= ?1 AND plant_id = ifnull(?2, plant_id) ORDER BY ${order}`,
  );
  return inChunks(rows.iterate(since?.getTime() ?? 0, plantId ?? null), (row) => ({
    plantId: toBigInt(row["plant_id"]),
    deletedAtUs: toBigInt(row["deleted_at"]) * 1_000n,
    subject: String(row["subject"]),
    requestId: String(row["request_id"]),
    batch: String(row["batch"]),
    idempotencyKey: typeof row["idempotency_key"] === "string" ? row["idempotency_key"] : undefined,
  }));
}

// Lock timeout, in milliseconds. Long, because an import is not urgent and even a busy server releases the lock often.
const importLockTimeoutMs = 60_000;

// Maximum number of ids that are sorted together (2 MB). A transaction of sorted ids writes a page range instead of one
// page per id. Sorting reduces the CPU time for 5 million random ids to a quarter.
const maxImported = 250_000;

// Maximum number of ids per transaction. Large enough for a low commit cost, but small enough for waiting servers.
const maxTransaction = 10_000;

/** Starts an import into a store. A server may use the store at the same time. The import owns the connection. */
function startImport(db: DatabaseSync, { restore = false }: ImportOptions): PlantImport {
  // The plants in deletion records. With an index on the records instead, each deletion would cost 1.5 times as much.
  db.exec("CREATE TEMP TABLE deleted (plant_id INTEGER PRIMARY KEY) STRICT");
  const copyRecords = db.prepare("INSERT OR IGNORE INTO temp.deleted SELECT plant_id FROM deletions WHERE seq > ?");
  const newestRecord = db.prepare("SELECT coalesce(max(seq), 0) AS seq FROM deletions");
  const findDeleted = db.prepare("SELECT 1 FROM temp.deleted WHERE plant_id = ?");
  const insert = db.prepare("INSERT OR IGNORE INTO plants (id) VALUES (?)");
  let copiedSeq = 0n;
  /** Adds ids in the transaction of their lookup. Returns the progress, which a rollback must undo, as it does the copy. */
  const addPart = (part: BigInt64Array, counts: { added: number; deleted: number }): bigint => {
    if (!restore) copyRecords.run(copiedSeq);
    for (const id of part) {
      if (!restore && findDeleted.get(id) !== undefined) counts.deleted++;
      else if (insert.run(id).changes === 1n) counts.added++;
    }
    return toBigInt(newestRecord.get()?.["seq"]);
  };
  // Copies existing records before the first transaction takes the write lock.
  db.exec("BEGIN");
  copiedSeq = addPart(new BigInt64Array(), { added: 0, deleted: 0 });
  db.exec("COMMIT");
  return {
    maxBatch: maxImported,
    add: async (ids) => {
      const sorted = new BigInt64Array(ids).toSorted();
      const counts = { added: 0, deleted: 0 };
      for (let at = 0; at < sorted.length; at += maxTransaction) {
        const part = sorted.subarray(at, at + maxTransaction);
        copiedSeq = runInTransaction(db, () => addPart(part, counts), importLockTimeoutMs);
        await sleep(lockGapMs);
      }
      return { ...counts, present: sorted.length - counts.added - counts.deleted };
    },
    [Symbol.asyncDispose]: async () => db.close(),
  };
}

/** Opens a store's file as the source or target of a move. @throws StoreOpenError if the file cannot be opened */
export async function openMovableSqlite(file: string): Promise<MovableStore> {
  const { db, close } = openClaimed(file);
  const name = db.location() ?? file;
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
  const valuesOf = (sql: string): SQLOutputValue[] => Object.values(db.prepare(sql).get() ?? {});
  return {
    name,
    countKeysSql: "SELECT count(*) FROM idempotency_keys JOIN deletions USING (seq, deleted_at)",
    // A write transaction reads one snapshot.
    begin: () => run(() => beginWrite(db)),
    commit: () => run(() => db.exec("COMMIT")),
    rollBack: () => run(() => (db.isTransaction ? db.exec("ROLLBACK") : undefined)),
    run: (sql, value) => run(() => void db.prepare(sql).run(value === undefined ? {} : { $1: value })),
    get: (sql) => run(() => valuesOf(sql).map((value) => (value === null ? null : String(value)))),
    plants: () => rethrowing(fail, idsIn(db, "moved_plants")),
    // In the order of commits, even if the clock was set back, because the newest record's batch numbers the next batch.
    records: () => rethrowing(fail, recordsIn(db, keyedRecords, {}, "seq")),
    insertPlants: (ids) =>
      run(() => {
        const insert = db.prepare("INSERT INTO moved_plants (id) VALUES (?)");
        for (const id of ids) insert.run(id);
      }),
    insertRecords: (records) => run(() => records.forEach(prepareInsertRecord(db))),
    [Symbol.asyncDispose]: close,
  };
}

function prepareInsertRecord(db: DatabaseSync): (record: Deletion) => void {
  const insert = db.prepare(
    "INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch) VALUES (?, ?, ?, ?, ?)",
  );
  // Replaces a row with the same key that retention may have left, see migrate.ts.
  const insertKey = db.prepare("INSERT OR REPLACE INTO idempotency_keys VALUES (?, last_insert_rowid(), ?)");
  return ({ plantId, deletedAtUs, subject, requestId, batch, idempotencyKey }) => {
    const deletedAtMs = deletedAtUs / 1_000n;
    // From a UUID, keeps the low bits, so that later numbers still fit in 64 bits.
    const uuidBits = BigInt.asUintN(62, BigInt(`0x${batch.replaceAll("-", "")}`));
    insert.run(plantId, deletedAtMs, subject, requestId, batch.includes("-") ? uuidBits : BigInt(batch));
    if (idempotencyKey !== undefined) insertKey.run(idempotencyKey, deletedAtMs);
  };
}
