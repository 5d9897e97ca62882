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
  /** The idempotency keys; missing if none of the calls has one. */
  readonly keys?: readonly (string | undefined)[];
}

/**
 * Why a batch, or the rest of it, was not committed. After `nothing-done` that is certain; with `unknown`, the fault
 * came during the commit.
 */
export interface BatchStop {
  readonly kind: "nothing-done" | "unknown";
  readonly problem: StoreProblem;
}

/**
 * The end of a deletion that neither deleted its plant nor found it missing: `kept`, because a constraint or trigger of
 * the file protects the plant; `replayed`, because an earlier deletion with its key is in the record; `key-taken`,
 * because that one was of another plant or by another subject.
 */
export interface OtherEnd {
  readonly index: number;
  readonly end: "kept" | "replayed" | "key-taken";
}

/**
 * The result of a batch. `outcomes` say whether each call deleted its plant, durably; when the batch was stopped, they
 * are those of its first plants, and the stop concerns all others. `otherEnds` say why some calls did not.
 */
export type BatchResult = ({ readonly kind: "committed" } | BatchStop) & {
  readonly outcomes: readonly boolean[];
  readonly otherEnds: readonly OtherEnd[];
};

/**
 * Prepares the statements of a batch once, and returns a function that runs a batch. It does not throw.
 *
 * A batch is one transaction. If the file refuses part of it, the whole transaction is rolled back and its parts run in
 * transactions of their own, so that only what is refused fails.
 */
export function prepareDeleteBatch(db: DatabaseSync, lockTimeoutMs?: number): (batch: DeleteBatch) => BatchResult {
  const runPart = preparePart(db, lockTimeoutMs);
  return (batch) => {
    const outcomes: boolean[] = [];
    const otherEnds: OtherEnd[] = [];
    // The ends of the parts that are still to be run, the next one last.
    const ends: number[] = [];
    for (let to: number | undefined = batch.ids.length; to !== undefined; to = ends.pop()) {
      const from = outcomes.length;
      const end = runPart(batch, to, outcomes, otherEnds);
      if (end.kind === "committed") continue;
      if (end.kind !== "refused") return { ...end, outcomes, otherEnds };
      if (to - from > 1) {
        ends.push(to, end.divideAt);
      } else {
        otherEnds.push({ index: from, end: "kept" });
        outcomes.push(false);
      }
    }
    return { kind: "committed", outcomes, otherEnds };
  };
}

/** A trigger has silently skipped the record of a deletion, or its key, as RAISE(IGNORE) does. */
class RecordRefused extends Error {}

/** How a part of a batch ended. A refused part has done nothing. */
type PartEnd =
  | BatchStop
  | { readonly kind: "committed" }
  | { readonly kind: "refused"; /** An index between the part's first and its end. */ readonly divideAt: number };

/** How a deletion ended: whether it has deleted its plant, or in which other way. */
type End = boolean | OtherEnd["end"];

/** Prepares the function that deletes the plant of one call of a batch, in a transaction, and records that. */
function prepareDelete(db: DatabaseSync): (batch: DeleteBatch, i: number, deletedAt: number, number: bigint) => End {
  const deletePlant = db.prepare("DELETE FROM plants WHERE id = ?");
  const findPlant = db.prepare("SELECT 1 FROM plants WHERE id = ?");
  const record = db.prepare(
    "INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch) VALUES (?, ?, ?, ?, ?)",
  );
  // From the record as it is: a trigger may have given it another time.
  const keepKey = db.prepare(`
    INSERT OR REPLACE INTO idempotency_keys SELECT ?, seq, deleted_at FROM deletions WHERE seq = last_insert_rowid()`);
  // A key is worth something only with its record: it may be dropped later.
  const findKey = db.prepare(`
    SELECT plant_id, subject FROM idempotency_keys JOIN deletions USING (seq, deleted_at) WHERE idempotency_key = ?`);

  return (batch, i, deletedAt, number) => {
    const id = batch.ids[i] ?? null;
    const subject = batch.subjects[i] ?? "";
    const requestId = batch.requestIds[i] ?? "";
    const key = batch.keys?.[i];
    // Before the plant is touched, which may have been restored since.
    const earlier = key === undefined ? undefined : findKey.get(key);
    if (earlier !== undefined) {
      return earlier["plant_id"] === id && earlier["subject"] === subject ? "replayed" : "key-taken";
    }
    // RAISE(IGNORE) keeps a plant silently.
    if (deletePlant.run(id).changes === 0n) return findPlant.get(id) === undefined ? false : "kept";
    const isRecorded = record.run(id, deletedAt, subject, requestId, number).changes !== 0n;
    const isKeyKept = isRecorded && (key === undefined || keepKey.run(key).changes !== 0n);
    if (!isKeyKept) throw new RecordRefused();
    return true;
  };
}

/**
 * Prepares the function that runs one part of a batch in one transaction: from the first plant without an outcome up to
 * an index. It appends the outcomes and other ends of the part once they are durable.
 */
function preparePart(
  db: DatabaseSync,
  lockTimeoutMs?: number,
): (batch: DeleteBatch, to: number, outcomes: boolean[], otherEnds: OtherEnd[]) => PartEnd {
  const deleteOne = prepareDelete(db);
  const commit = db.prepare("COMMIT");
  let batchNumber = lastBatch(db);

  const deleteAll = (batch: DeleteBatch, to: number, outcomes: boolean[], otherEnds: OtherEnd[]): void => {
    const deletedAt = Date.now();
    batchNumber++;
    for (let i = outcomes.length; i < to; i++) {
      const end = deleteOne(batch, i, deletedAt, batchNumber);
      if (typeof end === "string") otherEnds.push({ index: i, end });
      outcomes.push(end === true);
    }
  };

  return (batch, to, outcomes, otherEnds) => {
    const from = outcomes.length;
    const otherEndsBefore = otherEnds.length;
    try {
      beginWrite(db, lockTimeoutMs);
      deleteAll(batch, to, outcomes, otherEnds);
      commit.run();
      return { kind: "committed" };
    } catch (fault) {
      const stoppedAt = outcomes.length;
      outcomes.length = from;
      otherEnds.length = otherEndsBefore;
      const isCommitting = stoppedAt === to;
      const isRefused = fault instanceof RecordRefused || isConstraintFault(fault);
      // A refused commit leaves the transaction open, and nothing of it is in the file.
      const isCertain = !isCommitting || db.isTransaction;
      // After a full disk, a failed write or RAISE(ROLLBACK) SQLite has already rolled back.
      if (db.isTransaction) db.exec("ROLLBACK");
      // No test can tell: SQLite refuses no commit that it has ended.
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
