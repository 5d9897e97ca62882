import { createHash } from "node:crypto";

const uuidForm = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * Returns the batch UUID for a moved record, as PostgreSQL stores it. An SQLite batch number becomes a UUID (RFC 9562
 * §5.8) that depends on the number and the time, so that a batch's records stay together.
 */
export function batchUuidOf(batch: string, deletedAtUs: bigint): string {
  if (uuidForm.test(batch)) return batch;
  const bytes = digestOf(`${batch} ${deletedAtUs}`);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString("hex", 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/**
 * Returns the batch number for a moved record, as SQLite stores it. A UUID becomes a number below 2^62, so that later
 * batches' numbers, which count on from it, fit in 64 bits.
 */
export function batchNumberOf(batch: string): bigint {
  return uuidForm.test(batch) ? digestOf(batch).readBigUInt64BE() >> 2n : BigInt(batch);
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
