import type { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import type { ImportCounts, ImportOptions, PlantImport } from "../plant-database.ts";
import { lockGapMs, runInTransaction } from "./transaction.ts";

// The longest wait for the lock, in milliseconds: nobody waits for an import, and a busy server lets it in at times.
const lockTimeoutMs = 60_000;

/** Starts an import into a file that a server may be using at the same time. The import owns the connection. */
export function startImport(db: DatabaseSync, options: ImportOptions): PlantImport {
  const wasDeleted = options.restore === true ? neverDeleted : followDeletions(db);
  const insert = db.prepare("INSERT OR IGNORE INTO plants (id) VALUES (?)");

  const add = (ids: readonly bigint[] | BigInt64Array): ImportCounts => {
    const isDeleted = wasDeleted();
    let added = 0;
    let deleted = 0;
    for (const id of ids) {
      if (isDeleted(id)) deleted++;
      else if (insert.run(id).changes === 1n) added++;
    }
    return { added, deleted, present: ids.length - added - deleted };
  };

  return {
    add: async (ids) => {
      const counts = runInTransaction(db, () => add(ids), lockTimeoutMs);
      // Gives a server the chance to take the lock.
      await sleep(lockGapMs);
      return counts;
    },
    [Symbol.asyncDispose]: async () => db.close(),
  };
}

type IsDeleted = (id: bigint) => boolean;

const neverDeleted = (): IsDeleted => () => false;

/**
 * Copies the ids of the deletion records into a temporary table. Returns a function that copies those that were added
 * since; called inside the transaction of the insert, it makes sure that nothing is deleted between lookup and insert.
 *
 * An index on the records would save the copy, but would make every deletion half as expensive again for the sake of a
 * rare import.
 */
function followDeletions(db: DatabaseSync): () => IsDeleted {
  db.exec(`
    CREATE TEMP TABLE deleted (plant_id INTEGER PRIMARY KEY) STRICT;
    CREATE TEMP TABLE copied (seq INTEGER NOT NULL) STRICT;
    INSERT INTO copied VALUES (0)`);
  const copy = db.prepare(`
    INSERT OR IGNORE INTO temp.deleted SELECT plant_id FROM deletions WHERE seq > (SELECT seq FROM copied)`);
  const mark = db.prepare("UPDATE temp.copied SET seq = coalesce((SELECT max(seq) FROM deletions), 0)");
  const find = db.prepare("SELECT 1 FROM temp.deleted WHERE plant_id = ?");

  const follow = (): IsDeleted => {
    copy.run();
    mark.run();
    return (id) => find.get(id) !== undefined;
  };
  // Copies most of the ids before the first transaction holds the lock.
  db.exec("BEGIN");
  follow();
  db.exec("COMMIT");
  return follow;
}
