import type { DatabaseSync } from "node:sqlite";

// Keys that are checked for each record that is dropped. Each round then finds a quarter of the keys expired, so that a
// page is written once for all its expired keys; on average, an eighth of the table is expired keys.
const keysPerRecord = 4;

// Blobs sort after all text.
const afterAllKeys = new Uint8Array();

/**
 * Prepares the function that drops keys whose records are gone. It is called in the transaction that has dropped some
 * records, with their number.
 *
 * It scans the keys in order, a slice at a time, again and again. Keys need not be dropped in time, since they are
 * ignored without their record, and jumps of the clock do not matter: a key that is older than the oldest record has no
 * record.
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
    const end = nextEnd.get(begin, records * keysPerRecord)?.["idempotency_key"];
    drop.run(begin, end ?? afterAllKeys, oldestRecord.get()?.["deleted_at"] ?? null);
    mark.run(end ?? "");
  };
}
