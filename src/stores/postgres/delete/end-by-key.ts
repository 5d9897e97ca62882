import { type Deletion, endings } from "../../contract/deletion.ts";
import type { Session } from "../server/session.ts";
import type { Placement } from "./placement.ts";

/** Ends the deletions whose idempotency key has a record. */
export async function endByKey(session: Session, placement: Placement, keyed: readonly Deletion[]): Promise<void> {
  if (keyed.length === 0) return;
  const rows = await placement.findKeyRecords(session, keyed);
  const records = new Map(rows.map((row) => [row[0], row]));
  for (const one of keyed) {
    const record = records.get(one.call.idempotencyKey ?? null);
    if (record === undefined || !one.isOpen) continue;
    const [, plantId, subject, seq] = record;
    if (seq === null) one.end(endings.outcomeUnknown("the record of the idempotency key cannot be updated"));
    else if (plantId === String(one.id) && subject === one.call.subject) one.end(endings.deleted);
    else one.end(endings.keyReused());
  }
}
