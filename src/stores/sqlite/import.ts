import type { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import type { ImportOptions, PlantImport } from "../contract/plant-database.ts";
import { lockGapMs, runInTransaction } from "./transaction.ts";

// Lock timeout, in milliseconds. Long, because an import is not urgent and even a busy server releases the lock often.
const lockTimeoutMs = 60_000;

// Maximum number of ids that are sorted together (2 MB). A transaction of sorted ids writes a page range instead of one
// page per id. Sorting reduces the CPU time for 5 million random ids to a quarter.
const batchMax = 250_000;

// Maximum number of ids per transaction. Large enough for a low commit cost, but small enough for waiting servers.
const transactionMax = 10_000;

/** Starts an import into a store. A server may use the store at the same time. The import owns the connection. */
export function startImport(db: DatabaseSync, options: ImportOptions): PlantImport {
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
