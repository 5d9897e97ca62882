import type { DatabaseSync } from "node:sqlite";
import type { Outcomes } from "../delete-queue.ts";
import type { StoreProblem } from "../health.ts";
import { fileProblemOf, isRefusal } from "./problem.ts";
import { beginWrite } from "./transaction.ts";

/**
 * Deletions that share a commit, column by column: a batch crosses a thread border, and columns are cheap
 * to copy. Plain arrays: a typed one takes its buffer along, which costs more than all ids of a usual batch.
 */
export interface DeleteBatch {
  readonly ids: readonly bigint[];
  readonly subjects: readonly string[];
  readonly requestIds: readonly string[];
}

/**
 * What became of a batch. `kept` are the indexes of plants that a constraint or trigger of the file keeps.
 * `nothing-done` is certain; `unknown` is not: the fault came while committing.
 */
export type BatchResult =
  | { readonly kind: "committed"; readonly outcomes: Outcomes; readonly kept: readonly number[] }
  | { readonly kind: "nothing-done" | "unknown"; readonly problem: StoreProblem };

/** Prepares the statements of a batch once, and returns the function that runs one. It does not throw. */
export function prepareDeleteBatch(db: DatabaseSync, lockTimeoutMs?: number): (batch: DeleteBatch) => BatchResult {
  const deletePlant = db.prepare("DELETE FROM plants WHERE id = ?");
  const record = db.prepare(
    "INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch) VALUES (?, ?, ?, ?, ?)",
  );
  const commit = db.prepare("COMMIT");
  let batchNumber = lastBatch(db);

  const deleteAll = (batch: DeleteBatch, kept: number[]): Outcomes => {
    const deletedAt = Date.now();
    batchNumber++;
    return batch.ids.map((id, i) => {
      try {
        if (deletePlant.run(id).changes === 0n) return false;
      } catch (fault) {
        // A statement that is refused has done nothing, unless it has ended the transaction.
        if (!isRefusal(fault) || !db.isTransaction) throw fault;
        kept.push(i);
        return false;
      }
      record.run(id, deletedAt, batch.subjects[i] ?? "", batch.requestIds[i] ?? "", batchNumber);
      return true;
    });
  };

  return (batch) => {
    let committing = false;
    const kept: number[] = [];
    try {
      beginWrite(db, lockTimeoutMs);
      const outcomes = deleteAll(batch, kept);
      committing = true;
      commit.run();
      return { kind: "committed", outcomes, kept };
    } catch (fault) {
      // A full disk or a failed write has already rolled back by itself.
      if (db.isTransaction) db.exec("ROLLBACK");
      return { kind: committing ? "unknown" : "nothing-done", problem: fileProblemOf(fault) };
    }
  };
}

function lastBatch(db: DatabaseSync): bigint {
  const last = db.prepare("SELECT batch FROM deletions ORDER BY seq DESC LIMIT 1").get()?.["batch"];
  return typeof last === "bigint" ? last : 0n;
}
