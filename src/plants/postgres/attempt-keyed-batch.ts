import type { PendingDelete } from "../delete-queue.ts";
import { type Attempt, attemptBatch, type AttemptMode } from "./attempt-batch.ts";
import type { DeleteBatch } from "./delete-batch.ts";
import { verdictOn } from "./fault-table.ts";
import type { Session } from "./session.ts";
import type { ToldByKey } from "./told-by-key.ts";

/** Options of {@link attemptKeyedBatch}. */
export interface KeyedAttemptMode extends AttemptMode {
  /**
   * Whether the keys are looked up before anything is deleted. Unless something has failed, it is enough to look up the
   * keys of deletions that found no plant: the index lets no key be used twice.
   */
  readonly looksFirst: boolean;
}

/** The end of an attempt at a batch in which there are idempotency keys. */
export type KeyedAttempt =
  | Attempt
  /** Some callers were answered by their key before anything was deleted. The others are for the next attempt. */
  | { readonly kind: "told" };

/**
 * Attempts to delete the plants of a batch as {@link attemptBatch} does, and answers the callers whose key has a record
 * already. No caller with a key is told that there is no plant before its key was looked up.
 */
export async function attemptKeyedBatch(
  session: Session,
  batch: DeleteBatch,
  pending: readonly PendingDelete[],
  told: ToldByKey,
  mode: KeyedAttemptMode,
): Promise<KeyedAttempt> {
  let { mayBeDone } = mode;
  try {
    if (mode.looksFirst && (await told.tell(session, batch.keyed))) return { kind: "told" };
    const attempt = await attemptBatch(session, batch, pending, mode);
    if (attempt.kind === "failed") return attempt;
    // From here on, the deletions are committed.
    mayBeDone = true;
    const undeleted = batch.keyed.filter((one) => !isDeletedFor(one, attempt, batch));
    // Another process may have deleted the plant for the same key, while the statement waited for its lock.
    if (undeleted.length > 0) await told.tellUndeleted(session, undeleted, batch.postponed);
    return attempt;
  } catch (fault) {
    return { kind: "failed", verdict: verdictOn(fault), fault, mayBeDone };
  }
}

function isDeletedFor(
  one: PendingDelete,
  attempt: Exclude<Attempt, { kind: "failed" }>,
  { firstOf }: DeleteBatch,
): boolean {
  const isDeleted = attempt.kind === "all-deleted" || attempt.fates.get(one.id) === "deleted";
  return isDeleted && firstOf.get(one.id) === one;
}
