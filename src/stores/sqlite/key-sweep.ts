import type { DatabaseSync } from "node:sqlite";

// Keys that are looked at for each record that is dropped. Each round then finds a quarter of the keys expired, so that a
// page is written once for all of its own; on average, an eighth of the table waits for its turn.
const seenPerRecord = 4;

// A blob sorts after every text.
const afterAllKeys = new Uint8Array();

/**
 * Prepares the function that drops keys whose records are gone. It is called in the transaction that has dropped some
 * records, with their number.
 *
 * It goes through the keys in their order, a slice at a time, and round again. It does not matter when the turn of a key
 * comes, since without its record it counts for nothing, nor what the clock has done: a key that is older than the oldest
 * record has no record.
 */
export function prepareKeySweep(db: DatabaseSync): (records: number) => void {
  const lastEnd = db.prepare("SELECT up_to FROM swept_keys");
  const nextEnd = db.prepare(`
    SELECT idempotency_key FROM idempotency_keys WHERE idempotency_key > ? ORDER BY idempotency_key LIMIT 1 OFFSET ?`);
  const oldestRecord = db.prepare("SELECT min(deleted_at) AS deleted_at FROM deletions");
  const drop = db.prepare(
    "DELETE FROM idempotency_keys WHERE idempotency_key > ? AND idempotency_key <= ? AND deleted_at < ?",
  );
  const mark = db.prepare("UPDATE swept_keys SET up_to = ?");

  return (records) => {
    const begin = lastEnd.get()?.["up_to"] ?? "";
    const end = nextEnd.get(begin, records * seenPerRecord)?.["idempotency_key"];
    drop.run(begin, end ?? afterAllKeys, oldestRecord.get()?.["deleted_at"] ?? null);
    mark.run(end ?? "");
  };
}
