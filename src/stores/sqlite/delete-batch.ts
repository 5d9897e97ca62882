import type { DatabaseSync } from "node:sqlite";
import type { Outcome } from "../contract/backend.ts";
import type { StoreProblem } from "../contract/store-health.ts";
import { toBigInt } from "./database.ts";
import type { FileIdentity } from "./file-identity.ts";
import { schemaProblemOf } from "./migrate.ts";
import { codeOf, fileProblemOf, isConstraintFault } from "./problem.ts";
import { beginWrite } from "./transaction.ts";

/** A deletion as the storage thread gets it. An array is cheap to copy. */
export type BatchRow = readonly [id: bigint, subject: string, requestId: string, idempotencyKey: string | null];

/** A batch's outcomes, in its order, and the file's problem, if any. */
export interface FileResult {
  readonly outcomes: readonly Outcome[];
  /** The database's error for each outcome, if any. */
  readonly causes?: readonly (string | undefined)[];
  readonly problem?: StoreProblem | undefined;
}

/**
 * Prepares a function that runs a batch in one transaction, and does not throw. If a deletion is refused or its trigger
 * fails, the transaction is rolled back, and each half is deleted like a batch. So only these deletions fail.
 */
export function prepareDeleteBatch(
  db: DatabaseSync,
  lockTimeoutMs?: number,
): (rows: readonly BatchRow[]) => FileResult {
  const deleteOne = prepareDelete(db);
  const commit = db.prepare("COMMIT");
  const newestRecord = db.prepare("SELECT batch FROM deletions ORDER BY seq DESC LIMIT 1");

  return function deleteBatch(rows: readonly BatchRow[]): FileResult {
    let isCommitting = false;
    try {
      beginWrite(db, lockTimeoutMs);
      const deletedAt = Date.now();
      // Reads the last number in the transaction, because another process may have committed batches to the same file.
      const batchNumber = toBigInt(newestRecord.get()?.["batch"] ?? 0n) + 1n;
      const outcomes = rows.map((row) => deleteOne(row, deletedAt, batchNumber));
      isCommitting = true;
      commit.run();
      return { outcomes };
    } catch (fault) {
      // After a refused commit, the transaction is still open, and the file is unchanged.
      const isUnknown = isCommitting && !db.isTransaction;
      // After a full disk, a failed write or RAISE(ROLLBACK), SQLite has already rolled back.
      if (db.isTransaction) db.exec("ROLLBACK");
      const isRefused = fault instanceof RecordRefused || isConstraintFault(fault);
      if (!isRefused && (isCommitting || !isTriggerFault(db, fault)))
        return failAll(rows, isUnknown ? "unknown" : "unavailable", schemaProblemOf(db) ?? fileProblemOf(fault));
      const { text } = fileProblemOf(fault);
      if (rows.length === 1) return { outcomes: [isRefused ? "protected" : "unavailable"], causes: [text] };
      const [first, second] = [rows.slice(0, rows.length / 2), rows.slice(rows.length / 2)];
      const done = deleteBatch(first);
      const rest = done.problem === undefined ? deleteBatch(second) : failAll(second, "unavailable", done.problem);
      const causes = [done, rest].flatMap(({ outcomes, causes: known = outcomes.map(() => undefined) }) => known);
      return { ...rest, outcomes: [...done.outcomes, ...rest.outcomes], causes };
    }
  };
}

/** Checks a file before each batch and before its commit is reported, which is not durable if the file was removed. */
export function withIdentityChecks(
  identity: Pick<FileIdentity, "findProblem">,
  deleteBatch: (rows: readonly BatchRow[]) => FileResult,
): (rows: readonly BatchRow[]) => FileResult {
  return (rows) => {
    const before = identity.findProblem();
    if (before !== undefined) return failAll(rows, "unavailable", before);
    const result = deleteBatch(rows);
    const after = identity.findProblem();
    return after === undefined ? result : failAll(rows, "unknown", after);
  };
}

/** Returns the same outcome for all deletions, because of a problem. */
export function failAll(rows: readonly unknown[], outcome: Outcome, problem: StoreProblem): FileResult {
  return { outcomes: rows.map(() => outcome), problem };
}

/** The error if a trigger has silently skipped a record or an idempotency key, for example with RAISE(IGNORE). */
class RecordRefused extends Error {}

// SQLITE_ERROR, SQLITE_TOOBIG and SQLITE_MISMATCH.
const triggerCodes: readonly number[] = [1, 18, 20];

/** Returns whether a trigger failed on a plant, such as on malformed JSON. Without its table, no deletion compiles. */
function isTriggerFault(db: DatabaseSync, fault: unknown): boolean {
  try {
    prepareDelete(db);
    return triggerCodes.includes(codeOf(fault));
  } catch {
    return false;
  }
}

/** Prepares a function that deletes a plant and records the deletion, in a transaction. */
function prepareDelete(db: DatabaseSync): (row: BatchRow, deletedAt: number, batch: bigint) => Outcome {
  const deletePlant = db.prepare("DELETE FROM plants WHERE id = ?");
  const exists = prepareExists(db);
  const insertRecord = db.prepare(
    "INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch) VALUES (?, ?, ?, ?, ?)",
  );
  // Copies the time from the stored record, because a trigger may have changed the time.
  const insertKey = db.prepare(`
    INSERT OR REPLACE INTO idempotency_keys SELECT ?, seq, deleted_at FROM deletions WHERE seq = last_insert_rowid()`);
  // An idempotency key is valid only while its record exists. The key may be dropped later than the record.
  const findKey = db.prepare(`
    SELECT plant_id, subject FROM idempotency_keys JOIN deletions USING (seq, deleted_at) WHERE idempotency_key = ?`);

  return ([id, subject, requestId, key], deletedAt, batch) => {
    // Looks the key up before the deletion, because the plant may have been restored since the key was used.
    const earlier = key === null ? undefined : findKey.get(key);
    if (earlier !== undefined) {
      return earlier["plant_id"] === id && earlier["subject"] === subject ? "deleted" : "key-reused";
    }
    // A trigger with RAISE(IGNORE) silently keeps a plant.
    if (deletePlant.run(id).changes === 0n) return exists(id) ? "protected" : "absent";
    const isRecorded = insertRecord.run(id, deletedAt, subject, requestId, batch).changes !== 0n;
    const hasKey = isRecorded && (key === null || insertKey.run(key).changes !== 0n);
    if (!hasKey) throw new RecordRefused("a trigger drops the deletion record or its idempotency key");
    return "deleted";
  };
}

// Number of rows on each side that are compared with a missing plant. In 1,000 pages with a wrong bit, byte or sector,
// four rows found every missed plant, and two rows missed some.
const neighborRows = 4;

/**
 * Prepares a function that returns whether a plant exists. SQLite does not check the order of rows, so a damaged page
 * can hide a plant. Then its neighbors are not in order, and the function throws an error that names the plant.
 */
function prepareExists(db: DatabaseSync): (id: bigint) => boolean {
  const above = db.prepare(`SELECT id FROM plants WHERE id >= ? ORDER BY id LIMIT ${neighborRows}`);
  const below = db.prepare(`SELECT id FROM plants WHERE id < ? ORDER BY id DESC LIMIT ${neighborRows}`);
  return (id) => {
    const before = below.all(id).map((row) => toBigInt(row["id"]));
    const after = above.all(id).map((row) => toBigInt(row["id"]));
    const exists = after[0] === id;
    const neighbors = [...before.toReversed(), ...(exists ? [] : [id]), ...after];
    if (neighbors.every((each, i) => i === 0 || each > (neighbors[i - 1] ?? each))) return exists;
    throw new Error(`the file is damaged near plant ${id}`);
  };
}
