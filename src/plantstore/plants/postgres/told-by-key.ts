import type { PendingDelete } from "../delete-queue.ts";
import { idempotencyKeyTaken, outcomeUnknown } from "../errors.ts";
import { findKeys, findPlants, type KeyRecord } from "./delete-batch.ts";
import type { Session } from "./session.ts";

/**
 * The deletions of a batch whose callers were answered while it ran, by their idempotency keys. They are left out of
 * every further attempt, because their plants may have been restored.
 */
export class ToldByKey extends Set<PendingDelete> {
  /** Answers those of the given deletions whose key has a record, and returns whether there were any. */
  async tell(session: Session, keyed: readonly PendingDelete[]): Promise<boolean> {
    const records = await findKeys(session, keyed);
    for (const one of keyed) {
      const record = records.get(keyOf(one));
      if (record === undefined) continue;
      this.add(one);
      tellOne(one, record);
    }
    return records.size > 0;
  }

  /**
   * Answers callers of a batch whose plants one attempt at it has not deleted: first those whose key has a record. Of
   * the others, a deletion that was postponed for another one with its key is answered if its plant is not there, which
   * needs no further attempt.
   */
  async tellUndeleted(
    session: Session,
    undeleted: readonly PendingDelete[],
    postponed: ReadonlySet<PendingDelete>,
  ): Promise<void> {
    const ids = Array.from(postponed, ({ id }) => id);
    // In this order: if another process has deleted a plant for the same key, its record is there once the plant is
    // gone.
    const there = new Set(ids.length === 0 ? [] : await findPlants(session, ids));
    await this.tell(session, undeleted);
    for (const one of postponed) {
      if (this.has(one) || there.has(one.id)) continue;
      this.add(one);
      one.resolve(false);
    }
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
