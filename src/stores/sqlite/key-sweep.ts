import type { DatabaseSync } from "node:sqlite";

// The number of keys that are checked for each dropped record. So a quarter of the keys are expired when the scan
// reaches them, and a page is written once for all its expired keys. On average, an eighth of the keys in the table are
// expired.
const keysPerRecord = 4;

// Blobs sort after all text.
const afterAllKeys = new Uint8Array();

/**
 * Prepares the function that drops keys whose records were dropped. Call it in the transaction that drops records, with
 * the number of records.
 *
 * It scans all keys in order, one slice per call, and then starts again. Keys may be dropped late, because a key
 * without a record is ignored. Jumps of the clock do not matter, because a key that is older than the oldest record has
 * no record.
 */
export function prepareKeySweep(db: DatabaseSync): (records: number) => void {
  const lastEnd = db.prepare("SELECT up_to FROM swept_keys");
  const nextEnd = db.prepare(`
    SELECT idempotency_key FROM idempotency_keys WHERE idempotency_key > ? ORDER BY idempotency_key LIMIT 1 OFFSET ?`);
  const oldestRecord = db.prepare("SELECT min(deleted_at) AS deleted_at FROM deletions");
  const drop = db.prepare(
    "DELETE FROM idempotency_keys WHERE idempotency_key > ? AND idempotency_key <= ? AND deleted_at < ?",
  );
  const saveProgress = db.prepare("UPDATE swept_keys SET up_to = ?");

  return (records) => {
    const begin = lastEnd.get()?.["up_to"] ?? "";
    const end = nextEnd.get(begin, records * keysPerRecord)?.["idempotency_key"];
    drop.run(begin, end ?? afterAllKeys, oldestRecord.get()?.["deleted_at"] ?? null);
    saveProgress.run(end ?? "");
  };
}
