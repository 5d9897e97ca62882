import type { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import type { ImportCounts, ImportOptions, PlantImport } from "../plant-database.ts";
import { lockGapMs, runInTransaction } from "./transaction.ts";

// Milliseconds. Nobody waits for an import; a server that is busy lets it in now and then.
const lockTimeoutMs = 60_000;

/** Starts an import into a file that a server may be serving at the same time. It owns its connection. */
export function startImport(db: DatabaseSync, options: ImportOptions): PlantImport {
  const wasDeleted = options.restore === true ? neverDeleted : followDeletions(db);
  const insert = db.prepare("INSERT OR IGNORE INTO plants (id) VALUES (?)");

  const add = (ids: readonly bigint[]): ImportCounts => {
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
      // Lets a server in, which would starve otherwise.
      await sleep(lockGapMs);
      return counts;
    },
    [Symbol.asyncDispose]: async () => db.close(),
  };
}

type IsDeleted = (id: bigint) => boolean;

const neverDeleted = (): IsDeleted => () => false;

/**
 * Copies the ids of the deletion record into a temporary table, and with every call those that have
 * come since. Called inside of the transaction that inserts, nothing is deleted between the look and
 * the insert.
 *
 * An index over the record would save the copy, and would make every deletion half as dear again for the
 * sake of a rare import.
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
  // The bulk is copied before the first transaction holds the lock.
  db.exec("BEGIN");
  follow();
  db.exec("COMMIT");
  return follow;
}
