import type { DatabaseSync, SQLOutputValue } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import type {
  Deletion,
  DeletionFilter,
  PlantDatabase,
  ImportOptions,
  PlantImport,
} from "../contract/plant-database.ts";
import type { Versions } from "../contract/schema-version.ts";
import { inChunks } from "../records/in-chunks.ts";
import { wrapErrors } from "../records/wrap-errors.ts";
import { idsIn, openDatabase, toBigInt } from "./database.ts";
import { asideProblemIn, schemaProblemOf, versionOf } from "./migrate.ts";
import { claimFile } from "./open-once.ts";
import { fileProblemOf } from "./problem.ts";
import { lockGapMs, runInTransaction } from "./transaction.ts";

/** Opens a store's file for commands, even while a server uses it. @throws StoreOpenError if it is not a store */
export async function openSqliteDatabase(file: string): Promise<PlantDatabase> {
  const opened = new DisposableStack();
  const db = opened.use(openDatabase({ file, isAside: true }));
  opened.use(claimFile(file));
  return wrapErrors(file, (fault) => (schemaProblemOf(db) ?? fileProblemOf(fault)).text, {
    startImport: async (options = {}) => startImport(openDatabase({ file }), options),
    exportPlants: async function* () {
      yield* idsIn(db, asideProblemIn(db) === undefined ? "plants" : "moved_plants");
    },
    listDeletions: (filter = {}) => listDeletions(db, filter),
    [Symbol.asyncDispose]: async () => opened.dispose(),
  });
}

/** Creates or migrates a store's file, and returns the versions before and after. @throws StoreOpenError */
export function migrateSqlite(file: string): Versions {
  let migratedFrom: number | undefined;
  using db = openDatabase({ file, migrates: true }, (from) => (migratedFrom = from));
  const { version: to } = versionOf(db);
  return { from: migratedFrom ?? to, to };
}

async function* listDeletions(
  db: DatabaseSync,
  { since, plantId }: DeletionFilter,
): AsyncGenerator<readonly Deletion[]> {
  // Reads all records even for a single plant. An index by plant would make every deletion more expensive.
  const rows = db.prepare(
    "SELECT * FROM deletions WHERE deleted_at >= ?1 AND plant_id = ifnull(?2, plant_id) ORDER BY deleted_at, seq",
  );
  yield* inChunks(rows.iterate(since?.getTime() ?? 0, plantId ?? null), toDeletion);
}

function toDeletion(row: Record<string, SQLOutputValue>): Deletion {
  return {
    plantId: toBigInt(row["plant_id"]),
    deletedAt: new Date(Number(row["deleted_at"])),
    subject: String(row["subject"]),
    requestId: String(row["request_id"]),
    batch: String(row["batch"]),
  };
}

// Lock timeout, in milliseconds. Long, because an import is not urgent and even a busy server releases the lock often.
const lockTimeoutMs = 60_000;

// Maximum number of ids that are sorted together (2 MB). A transaction of sorted ids writes a page range instead of one
// page per id. Sorting reduces the CPU time for 5 million random ids to a quarter.
const batchMax = 250_000;

// Maximum number of ids per transaction. Large enough for a low commit cost, but small enough for waiting servers.
const transactionMax = 10_000;

/** Starts an import into a store. A server may use the store at the same time. The import owns the connection. */
function startImport(db: DatabaseSync, options: ImportOptions): PlantImport {
  const readDeletions = options.restore === true ? neverDeleted : followDeletions(db);
  const insert = db.prepare("INSERT OR IGNORE INTO plants (id) VALUES (?)");

  return {
    batchMax,
    add: async (ids) => {
      const sorted = new BigInt64Array(ids).toSorted();
      let added = 0;
      let deleted = 0;
      const addPart = (part: BigInt64Array): void => {
        const isDeleted = readDeletions();
        for (const id of part) {
          if (isDeleted(id)) deleted++;
          else if (insert.run(id).changes === 1n) added++;
        }
      };
      for (let at = 0; at < sorted.length; at += transactionMax) {
        runInTransaction(db, () => addPart(sorted.subarray(at, at + transactionMax)), lockTimeoutMs);
        await sleep(lockGapMs);
      }
      return { added, deleted, present: sorted.length - added - deleted };
    },
    [Symbol.asyncDispose]: async () => db.close(),
  };
}

type IsDeleted = (id: bigint) => boolean;

const neverDeleted = (): IsDeleted => () => false;

// Copies the plant ids in deletion records into a temporary table. The returned function copies the ids in newer
// records, and returns a lookup. Call the returned function in the insert's transaction, so that no plant is deleted
// between lookup and insert. With an index on the records instead, each deletion would cost 1.5 times as much.
function followDeletions(db: DatabaseSync): () => IsDeleted {
  db.exec(`
    CREATE TEMP TABLE deleted (plant_id INTEGER PRIMARY KEY) STRICT;
    CREATE TEMP TABLE copied (seq INTEGER NOT NULL) STRICT;
    INSERT INTO copied VALUES (0)`);
  const copy = db.prepare(`
    INSERT OR IGNORE INTO temp.deleted SELECT plant_id FROM deletions WHERE seq > (SELECT seq FROM copied)`);
  const markCopied = db.prepare("UPDATE temp.copied SET seq = coalesce((SELECT max(seq) FROM deletions), 0)");
  const find = db.prepare("SELECT 1 FROM temp.deleted WHERE plant_id = ?");

  const followDeletionLog = (): IsDeleted => {
    copy.run();
    markCopied.run();
    return (id) => find.get(id) !== undefined;
  };
  // Copies the ids in existing records before the first import transaction takes the write lock.
  db.exec("BEGIN");
  followDeletionLog();
  db.exec("COMMIT");
  return followDeletionLog;
}
