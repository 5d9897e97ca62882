import { allocateBytes } from "../../../http/index.ts";
import { bailOut } from "../codegen.ts";

/**
 * The buffer for writing a message, with the current write position. JavaScript ignores writes past an array's end, so
 * numbers are written without a bounds check. Afterwards, {@link fits} shows whether the buffer was large enough. If
 * not, the message is written again to a larger buffer.
 */
export class ByteTarget {
  readonly bytes: Uint8Array;
  /** The offset at which the next write starts. */
  at = 0;
  /** The buffer size that the message needs at least, if known. */
  requiredBytes = 0;

  constructor(length: number) {
    this.bytes = allocateBytes(length);
  }

  /** Whether everything that was written fits into the buffer. */
  get fits(): boolean {
    return this.at <= this.bytes.byteLength;
  }
}

/** Thrown if the next value does not fit into the buffer. A symbol takes less time to create than an Error. */
export const bufferTooSmall: unknown = Symbol("buffer too small");

/** Throws {@link bufferTooSmall} unless the buffer has space for `length` more bytes. */
export function requireCapacity(target: ByteTarget, length: number): void {
  if (length <= target.bytes.byteLength - target.at) return;
  // equivalent mutant: without the required size, the writer tries smaller buffers first.
  target.requiredBytes = target.at + length;
  throw bufferTooSmall;
}

/** Writes a 32-bit varint. */
export function writeVarint32(target: ByteTarget, value: number): void {
  const { bytes } = target;
  let at = target.at;
  let remainder = value >>> 0;
  while (remainder > 0x7f) {
    bytes[at++] = (remainder & 0x7f) | 0x80;
    remainder >>>= 7;
  }
  bytes[at++] = remainder;
  target.at = at;
}

function writeVarint64(target: ByteTarget, lowHalf: number, highHalf: number): void {
  const { bytes } = target;
  let at = target.at;
  let low = lowHalf;
  let high = highHalf;
  while (high !== 0 || low >>> 0 > 0x7f) {
    bytes[at++] = (low & 0x7f) | 0x80;
    low = (low >>> 7) | (high << 25);
    high >>>= 7;
  }
  bytes[at++] = low;
  target.at = at;
}

/** Writes an int32 or an enum. */
export function writeInt32(target: ByteTarget, value: unknown): void {
  if (typeof value !== "number" || value !== (value | 0)) throw bailOut;
  if (value >= 0) writeVarint32(target, value);
  // A negative number is sign-extended to 64 bits (protobuf.dev, "Signed Integers").
  else writeVarint64(target, value, -1);
}

/** Writes a uint32. */
export function writeUint32(target: ByteTarget, value: unknown): void {
  if (typeof value !== "number" || value !== value >>> 0) throw bailOut;
  writeVarint32(target, value);
}

/** Writes a sint32. The lowest bit is the sign. */
export function writeSint32(target: ByteTarget, value: unknown): void {
  if (typeof value !== "number" || value !== (value | 0)) throw bailOut;
  writeVarint32(target, (value << 1) ^ (value >> 31));
}

// equivalent mutant: a longer buffer works as well.
const targetScratchView = new DataView(new ArrayBuffer(8));

/** Writes an int64. */
export function writeInt64(target: ByteTarget, value: unknown): void {
  targetScratchView.setBigInt64(0, toInt64(value), true);
  writeVarint64(target, targetScratchView.getInt32(0, true), targetScratchView.getInt32(4, true));
}

/** Writes a uint64. */
export function writeUint64(target: ByteTarget, value: unknown): void {
  targetScratchView.setBigUint64(0, toUint64(value), true);
  writeVarint64(target, targetScratchView.getInt32(0, true), targetScratchView.getInt32(4, true));
}

/** Writes a sint64. The lowest bit is the sign. */
export function writeSint64(target: ByteTarget, value: unknown): void {
  targetScratchView.setBigInt64(0, toInt64(value), true);
  const low = targetScratchView.getInt32(0, true);
  const high = targetScratchView.getInt32(4, true);
  const sign = high >> 31;
  writeVarint64(target, (low << 1) ^ sign, ((high << 1) | (low >>> 31)) ^ sign);
}

/** Converts a value to a bigint. Map keys, and fields with `jstype = JS_STRING`, are stored as strings. */
function toBigInteger(value: unknown): bigint {
  if (typeof value === "bigint") return value;
  if (typeof value !== "string") throw bailOut;
  return BigInt(value);
}

function toInt64(value: unknown): bigint {
  const integer = toBigInteger(value);
  if (BigInt.asIntN(64, integer) !== integer) throw bailOut;
  return integer;
}

function toUint64(value: unknown): bigint {
  const integer = toBigInteger(value);
  if (BigInt.asUintN(64, integer) !== integer) throw bailOut;
  return integer;
}

/** Writes a fixed64. */
export function writeFixed64(target: ByteTarget, value: unknown): void {
  targetScratchView.setBigUint64(0, toUint64(value), true);
  writeWord(target, 8);
}

/** Writes an sfixed64. */
export function writeSfixed64(target: ByteTarget, value: unknown): void {
  targetScratchView.setBigInt64(0, toInt64(value), true);
  writeWord(target, 8);
}

/** Writes a double. */
export function writeDouble(target: ByteTarget, value: unknown): void {
  if (typeof value !== "number") throw bailOut;
  targetScratchView.setFloat64(0, value, true);
  writeWord(target, 8);
}

/** Writes a float. protobuf-es throws the error for a number that is too large. */
export function writeFloat(target: ByteTarget, value: unknown): void {
  if (typeof value !== "number" || (Number.isFinite(value) && !Number.isFinite(Math.fround(value)))) throw bailOut;
  targetScratchView.setFloat32(0, value, true);
  writeWord(target, 4);
}

/** Writes a fixed32. */
export function writeFixed32(target: ByteTarget, value: unknown): void {
  if (typeof value !== "number" || value !== value >>> 0) throw bailOut;
  targetScratchView.setUint32(0, value, true);
  writeWord(target, 4);
}

/** Writes an sfixed32. */
export function writeSfixed32(target: ByteTarget, value: unknown): void {
  if (typeof value !== "number" || value !== (value | 0)) throw bailOut;
  targetScratchView.setInt32(0, value, true);
  writeWord(target, 4);
}

function writeWord(target: ByteTarget, length: number): void {
  const { bytes, at } = target;
  for (let index = 0; index < length; index += 1) bytes[at + index] = targetScratchView.getUint8(index);
  target.at = at + length;
}

/** Writes a bool. */
export function writeBool(target: ByteTarget, value: unknown): void {
  if (typeof value !== "boolean") throw bailOut;
  target.bytes[target.at++] = value ? 1 : 0;
}

/** Writes a bool map key. The key is a string, because property names are strings. */
export function writeBoolKey(target: ByteTarget, key: string): void {
  if (key !== "true" && key !== "false") throw bailOut;
  writeBool(target, key === "true");
}

/** Writes bytes with their length before them. */
export function writeBytes(target: ByteTarget, value: unknown): void {
  if (!(value instanceof Uint8Array)) throw bailOut;
  writeVarint32(target, value.byteLength);
  writeRaw(target, value);
}

/** Writes bytes without their length. */
export function writeRaw(target: ByteTarget, raw: unknown): void {
  if (!(raw instanceof Uint8Array)) throw bailOut;
  // equivalent mutant: without the check, protobuf-es writes a message that does not fit, only slower.
  requireCapacity(target, raw.byteLength);
  const { bytes, at } = target;
  bytes.set(raw, at);
  target.at = at + raw.byteLength;
}

/**
 * Writes the length of the content at `start`, where `reserved` bytes precede the content. Moves the content if the
 * length needs more or fewer bytes. Returns the number of bytes that the length takes.
 */
export function writeLengthBefore(target: ByteTarget, start: number, reserved: number): number {
  const { bytes, at } = target;
  const length = at - start - reserved;
  const needed = lengthBytes(length);
  // equivalent mutant: moving the bytes to the same place only costs a call.
  if (needed !== reserved) bytes.copyWithin(start + needed, start + reserved, at);
  target.at = start;
  writeVarint32(target, length);
  target.at += length;
  return needed;
}

/** Returns the number of bytes that a length takes as a varint. */
export function lengthBytes(length: number): number {
  if (length < 0x80) return 1;
  if (length < 0x4000) return 2;
  if (length < 0x20_0000) return 3;
  // equivalent mutant: a test would need a message with a quarter of a gigabyte.
  return length < 0x1000_0000 ? 4 : 5;
}
