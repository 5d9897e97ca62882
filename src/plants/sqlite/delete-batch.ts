import type { DatabaseSync } from "node:sqlite";
import type { StoreProblem } from "../store-health.ts";
import { fileProblemOf, isConstraintFault } from "./problem.ts";
import { beginWrite } from "./transaction.ts";

/**
 * Deletions that share a commit, as columns: a batch is copied to another thread, and columns are cheap to copy. Plain
 * arrays, because a typed array copies its whole buffer, which costs more than all ids of a usual batch.
 */
export interface DeleteBatch {
  readonly ids: readonly bigint[];
  readonly subjects: readonly string[];
  readonly requestIds: readonly string[];
}

/**
 * Why a batch, or the rest of it, was not committed. `nothing-done` is certain; with `unknown` the fault came during
 * the commit.
 */
export interface BatchStop {
  readonly kind: "nothing-done" | "unknown";
  readonly problem: StoreProblem;
}

/**
 * The result of a batch. `outcomes` are durable; when the batch was stopped, they are those of its first plants, and
 * the stop concerns all others. `kept` are the indexes of plants that a constraint or trigger of the file protects.
 */
export type BatchResult = ({ readonly kind: "committed" } | BatchStop) & {
  readonly outcomes: readonly boolean[];
  readonly kept: readonly number[];
};

/**
 * Prepares the statements of a batch once, and returns the function that runs one. It does not throw.
 *
 * A batch is one transaction. If the file refuses part of it, the whole transaction is rolled back and its parts run in
 * transactions of their own, so that only what is refused fails.
 */
export function prepareDeleteBatch(db: DatabaseSync, lockTimeoutMs?: number): (batch: DeleteBatch) => BatchResult {
  const runPart = preparePart(db, lockTimeoutMs);
  return (batch) => {
    const outcomes: boolean[] = [];
    const kept: number[] = [];
    // The ends of the parts that are still to be run, the next one last.
    const ends: number[] = [];
    for (let to: number | undefined = batch.ids.length; to !== undefined; to = ends.pop()) {
      const from = outcomes.length;
      const end = runPart(batch, to, outcomes, kept);
      if (end.kind === "committed") continue;
      if (end.kind !== "refused") return { ...end, outcomes, kept };
      if (to - from > 1) {
        ends.push(to, end.divideAt);
      } else {
        kept.push(from);
        outcomes.push(false);
      }
    }
    return { kind: "committed", outcomes, kept };
  };
}

/** A trigger has silently skipped the record of a deletion, as RAISE(IGNORE) does. */
class RecordRefused extends Error {}

/** How a part of a batch ended. A refused part has done nothing. */
type PartEnd =
  | BatchStop
  | { readonly kind: "committed" }
  | { readonly kind: "refused"; /** An index between the part's first and its end. */ readonly divideAt: number };

/**
 * Prepares the function that runs one part of a batch in one transaction: from the first plant without an outcome up to
 * an index. It appends the outcomes once they are durable, and the indexes of plants that a trigger keeps without a
 * word.
 */
function preparePart(
  db: DatabaseSync,
  lockTimeoutMs?: number,
): (batch: DeleteBatch, to: number, outcomes: boolean[], kept: number[]) => PartEnd {
  const deletePlant = db.prepare("DELETE FROM plants WHERE id = ?");
  const findPlant = db.prepare("SELECT 1 FROM plants WHERE id = ?");
  const record = db.prepare(
    "INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch) VALUES (?, ?, ?, ?, ?)",
  );
  const commit = db.prepare("COMMIT");
  let batchNumber = lastBatch(db);

  const deleteAll = (batch: DeleteBatch, to: number, outcomes: boolean[], kept: number[]): void => {
    const deletedAt = Date.now();
    batchNumber++;
    for (let i = outcomes.length; i < to; i++) {
      const id = batch.ids[i] ?? null;
      const isDeleted = deletePlant.run(id).changes !== 0n;
      if (isDeleted) {
        const recorded = record.run(id, deletedAt, batch.subjects[i] ?? "", batch.requestIds[i] ?? "", batchNumber);
        if (recorded.changes === 0n) throw new RecordRefused();
      } else if (findPlant.get(id) !== undefined) {
        // RAISE(IGNORE).
        kept.push(i);
      }
      outcomes.push(isDeleted);
    }
  };

  return (batch, to, outcomes, kept) => {
    const from = outcomes.length;
    const keptBefore = kept.length;
    try {
      beginWrite(db, lockTimeoutMs);
      deleteAll(batch, to, outcomes, kept);
      commit.run();
      return { kind: "committed" };
    } catch (fault) {
      const stoppedAt = outcomes.length;
      outcomes.length = from;
      kept.length = keptBefore;
      const isCommitting = stoppedAt === to;
      const isRefused = fault instanceof RecordRefused || isConstraintFault(fault);
      // A refused commit leaves the transaction open, and nothing of it is in the file.
      const isCertain = !isCommitting || db.isTransaction;
      // After a full disk, a failed write or RAISE(ROLLBACK) SQLite has already rolled back.
      if (db.isTransaction) db.exec("ROLLBACK");
      if (!isCertain || !isRefused) {
        return { kind: isCertain ? "nothing-done" : "unknown", problem: fileProblemOf(fault) };
      }
      // A commit does not say which plant it refuses. A statement does, and its plant becomes a part of its own.
      const divideAt = isCommitting ? Math.floor((from + to) / 2) : Math.max(stoppedAt, from + 1);
      return { kind: "refused", divideAt };
    }
  };
}

function lastBatch(db: DatabaseSync): bigint {
  const last = db.prepare("SELECT batch FROM deletions ORDER BY seq DESC LIMIT 1").get()?.["batch"];
  return typeof last === "bigint" ? last : 0n;
}
