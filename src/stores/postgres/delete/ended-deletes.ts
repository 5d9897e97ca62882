import type { PendingDelete } from "../../delete-queue.ts";
import { idempotencyKeyReused, outcomeUnknown } from "../../../service/index.ts";
import type { Session } from "../server/session.ts";
import type { Placement } from "./placement.ts";

/**
 * The deletions of a batch that have ended: with an outcome that the queue reports after the batch, or with `undefined`
 * if they were settled here or deferred. No further attempt includes them, because their plants may have been restored.
 */
export class EndedDeletes extends Map<PendingDelete, boolean | undefined> {
  /** Returns the deletions that have not ended. Rejects those whose call was cancelled. */
  openOf(part: readonly PendingDelete[]): readonly PendingDelete[] {
    return part.filter((one) => {
      const { aborted, reason } = one.call.context.signal;
      if (aborted) this.reject(one, reason);
      return !this.has(one);
    });
  }

  /** Rejects a deletion, unless it has ended. */
  reject(one: PendingDelete, reason: unknown): void {
    if (this.has(one)) return;
    this.set(one, undefined);
    one.reject(reason);
  }

  /** Resolves the deletions that have an outcome before their batch ends. */
  resolve(part: readonly PendingDelete[]): void {
    for (const one of part) {
      const isDeleted = this.get(one);
      if (isDeleted !== undefined) one.resolve(isDeleted);
    }
  }

  /** Settles the deletions whose idempotency key has a record. */
  async settleByKey(session: Session, placement: Placement, keyed: readonly PendingDelete[]): Promise<void> {
    if (keyed.length === 0) return;
    const rows = await placement.findKeyRecords(session, keyed);
    const records = new Map(rows.map((row) => [row[0], row]));
    for (const pendingDelete of keyed) {
      const { id, call, resolve, reject } = pendingDelete;
      const record = records.get(call.idempotencyKey);
      if (record === undefined) continue;
      const [, plantId, subject, seq] = record;
      this.set(pendingDelete, undefined);
      if (seq === null) reject(outcomeUnknown("the record of the idempotency key cannot be updated"));
      else if (plantId === String(id) && subject === call.subject) resolve(true);
      else reject(idempotencyKeyReused());
    }
  }
}
