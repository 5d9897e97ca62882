import type { DatabaseSync } from "node:sqlite";
import type { EndingKind, FailedEnding } from "../contract/deletion.ts";
import type { StoreProblem } from "../contract/store-health.ts";
import { toBigInt } from "./database.ts";
import { fileProblemOf, isConstraintFault } from "./problem.ts";
import { beginWrite } from "./transaction.ts";

/**
 * Deletions that share a commit, as columns. A batch is copied to the storage thread, and columns are cheap to copy.
 * `ids` is a plain array, because copying a typed array copies the whole buffer, which costs more for a usual batch.
 */
export interface DeleteBatch {
  readonly ids: readonly bigint[];
  readonly subjects: readonly string[];
  readonly requestIds: readonly string[];
  readonly keys?: readonly (string | undefined)[];
}

/** The endings that the storage thread can set. */
export type FileEnding = Extract<EndingKind, "deleted" | "absent" | "protected" | "key-reused">;

/** The ending for a failed batch's open deletions, and the reason. */
export interface BatchFailure {
  /** `unavailable` for an error before the commit, or `outcome-unknown` for an error during or after the commit. */
  readonly kind: FailedEnding["kind"];
  readonly problem: StoreProblem;
}

/** A batch's result, which the storage thread sends. */
export interface BatchResult {
  /** The deletions' endings, in the batch's order. After a failure, only the first deletions have endings. */
  readonly endings: readonly FileEnding[];
  /** The ending for the other deletions. Undefined if every deletion has an ending. */
  readonly failure?: BatchFailure | undefined;
}

/**
 * Prepares the statements once, and returns a function that runs a batch. The function does not throw.
 *
 * A batch is one transaction. If SQLite rejects a deletion, the transaction is rolled back, the batch is split into two
 * ranges, and each range is deleted like a batch. So only the rejected deletions fail.
 */
export function prepareDeleteBatch(db: DatabaseSync, lockTimeoutMs?: number): (batch: DeleteBatch) => BatchResult {
  const deleteOne = prepareDelete(db);
  const commit = db.prepare("COMMIT");
  const newestRecord = db.prepare("SELECT batch FROM deletions ORDER BY seq DESC LIMIT 1");
  let batchNumber = 0n;

  // Runs the deletions from index `endings.length` up to `to`. Adds their endings, unless the range fails.
  const deleteRange = (batch: DeleteBatch, endings: FileEnding[], to: number): BatchFailure | undefined => {
    const from = endings.length;
    try {
      beginWrite(db, lockTimeoutMs);
      const deletedAt = Date.now();
      // Reads the last number in the transaction, because another process may have committed batches to the same file.
      // A batch without records has a number too, so the last record's number may be lower than this thread's.
      const lastBatch = toBigInt(newestRecord.get()?.["batch"] ?? 0n);
      batchNumber = (lastBatch > batchNumber ? lastBatch : batchNumber) + 1n;
      for (let i = from; i < to; i++) endings.push(deleteOne(batch, i, deletedAt, batchNumber));
      commit.run();
      return undefined;
    } catch (fault) {
      const stoppedAt = endings.length;
      endings.length = from;
      // If every deletion has an ending, the COMMIT has failed.
      const isCommitting = stoppedAt === to;
      const isRefused = fault instanceof RecordRefused || isConstraintFault(fault);
      // After a refused commit, the transaction is still open, and the file is unchanged.
      const isCertain = !isCommitting || db.isTransaction;
      // After a full disk, a failed write or RAISE(ROLLBACK), SQLite has already rolled back.
      if (db.isTransaction) db.exec("ROLLBACK");
      // equivalent mutant: SQLite never refuses a commit after it has closed the transaction.
      if (!isCertain || !isRefused) {
        return { kind: isCertain ? "unavailable" : "outcome-unknown", problem: fileProblemOf(fault) };
      }
      if (to - from > 1) {
        // The second range starts with the refused deletion. A refused commit does not show which deletion is refused.
        const splitAt = isCommitting ? Math.floor((from + to) / 2) : Math.max(stoppedAt, from + 1);
        return deleteRange(batch, endings, splitAt) ?? deleteRange(batch, endings, to);
      }
      endings.push("protected");
      return undefined;
    }
  };

  return (batch) => {
    const endings: FileEnding[] = [];
    return { failure: deleteRange(batch, endings, batch.ids.length), endings };
  };
}

/** The error if a trigger has silently skipped a record or an idempotency key, for example with RAISE(IGNORE). */
class RecordRefused extends Error {}

/** Prepares the function that deletes a plant and records the deletion. Call the function in a transaction. */
function prepareDelete(
  db: DatabaseSync,
): (batch: DeleteBatch, i: number, deletedAt: number, number: bigint) => FileEnding {
  const deletePlant = db.prepare("DELETE FROM plants WHERE id = ?");
  const findPlant = db.prepare("SELECT 1 FROM plants WHERE id = ?");
  const insertRecord = db.prepare(
    "INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch) VALUES (?, ?, ?, ?, ?)",
  );
  // Copies the time from the stored record, because a trigger may have changed the time.
  const insertKey = db.prepare(`
    INSERT OR REPLACE INTO idempotency_keys SELECT ?, seq, deleted_at FROM deletions WHERE seq = last_insert_rowid()`);
  // An idempotency key is valid only while its record exists. The key may be dropped later than the record.
  const findKey = db.prepare(`
    SELECT plant_id, subject FROM idempotency_keys JOIN deletions USING (seq, deleted_at) WHERE idempotency_key = ?`);

  return (batch, i, deletedAt, number) => {
    const id = batch.ids[i] ?? null;
    const subject = batch.subjects[i] ?? "";
    const requestId = batch.requestIds[i] ?? "";
    const key = batch.keys?.[i];
    // Looks the key up before the deletion, because the plant may have been restored since the key was used.
    const earlier = key === undefined ? undefined : findKey.get(key);
    if (earlier !== undefined) {
      return earlier["plant_id"] === id && earlier["subject"] === subject ? "deleted" : "key-reused";
    }
    // A trigger with RAISE(IGNORE) silently keeps a plant.
    if (deletePlant.run(id).changes === 0n) return findPlant.get(id) === undefined ? "absent" : "protected";
    const isRecorded = insertRecord.run(id, deletedAt, subject, requestId, number).changes !== 0n;
    const hasKey = isRecorded && (key === undefined || insertKey.run(key).changes !== 0n);
    if (!hasKey) throw new RecordRefused();
    return "deleted";
  };
}
