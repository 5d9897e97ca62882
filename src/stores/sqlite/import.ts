import type { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import type { ImportOptions, PlantImport } from "../contract/plant-database.ts";
import { lockGapMs, runInTransaction } from "./transaction.ts";

// The longest wait for the lock, in milliseconds. The wait is long because an import is not urgent, and even a busy
// server releases the lock between batches.
const lockTimeoutMs = 60_000;

// How many ids are sorted together: 2 MB. Random ids are distributed over all table pages. If they are sorted, a
// transaction writes a page range instead of one page per id, and 5 million ids take a quarter of the CPU time.
const batchMax = 250_000;

// Ids per transaction. Enough to make the commit's cost small, and few enough for a server to delete in between.
const transactionMax = 10_000;

/** Starts an import into a file that a server may be using at the same time. The import owns the connection. */
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
        // Allows a server to take the lock.
        await sleep(lockGapMs);
      }
      return { added, deleted, present: sorted.length - added - deleted };
    },
    [Symbol.asyncDispose]: async () => db.close(),
  };
}

type IsDeleted = (id: bigint) => boolean;

const neverDeleted = (): IsDeleted => () => false;

/**
 * Copies the deletion records' ids into a temporary table. Returns a function that copies newer records' ids. The
 * function must be called in the insert's transaction, so that no plant is deleted between lookup and insert.
 *
 * An index on the records would make the copy unnecessary, but each deletion would cost 1.5 times as much.
 */
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
  // Copies most ids before the first transaction holds the lock.
  db.exec("BEGIN");
  followDeletionLog();
  db.exec("COMMIT");
  return followDeletionLog;
}
