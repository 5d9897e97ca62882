import type { PendingDelete } from "../../delete-queue.ts";
import { idempotencyKeyReused, outcomeUnknown } from "../../../service/index.ts";
import type { Row, Session } from "../server/session.ts";
import type { Placement } from "./placement.ts";

/**
 * The deletions of a batch that were settled while it ran, by their idempotency keys. They are excluded from further
 * attempts, because their plants may have been restored.
 */
export class SettledByKey extends Set<PendingDelete> {
  /** Settles the deletions whose key has a record, and returns whether there were any. */
  async settle(session: Session, placement: Placement, keyed: readonly PendingDelete[]): Promise<boolean> {
    if (keyed.length === 0) return false;
    const rows = await placement.findKeyRecords(session, keyed);
    const records = new Map(rows.map((row) => [row[0], row]));
    for (const pendingDelete of keyed) {
      const record = records.get(pendingDelete.call.idempotencyKey ?? "");
      if (record === undefined) continue;
      this.add(pendingDelete);
      settleOne(pendingDelete, record);
    }
    return rows.length > 0;
  }
}

function settleOne({ id, call, resolve, reject }: PendingDelete, [, plantId, subject, seq]: Row): void {
  if (seq === null) reject(outcomeUnknown("the record of the idempotency key cannot be updated"));
  else if (plantId === String(id) && subject === call.subject) resolve(true);
  else reject(idempotencyKeyReused());
}
