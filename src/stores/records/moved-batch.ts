import { createHash } from "node:crypto";

const uuidForm = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * Returns the batch UUID of a record that is moved to PostgreSQL. The batch number and the deletion's time in SQLite
 * are hashed into a UUID (RFC 9562 §5.8). All records in a batch get the same UUID.
 */
export function batchUuidOf(batch: string, deletedAtUs: bigint): string {
  if (uuidForm.test(batch)) return batch;
  const bytes = digestOf(`${batch} ${deletedAtUs}`);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString("hex", 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/**
 * Returns the batch number of a record that is moved to SQLite. A UUID is hashed into a number below 2^62. The numbers
 * of new batches count up from the last record's number, and fit in 64 bits.
 */
export function batchNumberOf(batch: string): bigint {
  return uuidForm.test(batch) ? digestOf(batch).readBigUInt64BE() >> 2n : BigInt(batch);
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
