import type { PendingDelete } from "../delete-queue.ts";
import { idempotencyKeyTaken, outcomeUnknown } from "../errors.ts";
import { findKeys, type KeyRecord } from "./delete-batch.ts";
import type { Session } from "./session.ts";

/**
 * The deletions of a batch whose callers were told what an earlier one with their idempotency key came to. They are left
 * out of every further attempt: their plants may have been restored.
 */
export class ToldByKey extends Set<PendingDelete> {
  /** Tells those of the given deletions whose key has a record, and returns whether there were any. */
  async tell(session: Session, keyed: readonly PendingDelete[]): Promise<boolean> {
    const records = await findKeys(session, [...new Set(keyed.map(keyOf))]);
    for (const one of keyed) {
      const record = records.get(keyOf(one));
      if (record === undefined) continue;
      this.add(one);
      tellOne(one, record);
    }
    return records.size > 0;
  }
}

function keyOf({ call }: PendingDelete): string {
  return call.idempotencyKey ?? "";
}

function tellOne({ id, call, resolve, reject }: PendingDelete, { plantId, subject, isDurable }: KeyRecord): void {
  if (!isDurable) reject(outcomeUnknown("the record of the key cannot be written to"));
  else if (plantId === id && subject === call.subject) resolve(true);
  else reject(idempotencyKeyTaken());
}
