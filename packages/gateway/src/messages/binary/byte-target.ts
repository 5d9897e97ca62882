import { allocateBytes } from "../../exchange/index.ts";
import { unsure } from "../codegen/index.ts";

/**
 * Where a message is written, and how much of it was.
 *
 * What is written past the end of an array goes nowhere, so numbers are written without a look at what is left. At the
 * end `at` says whether there was enough; otherwise all is written again into more.
 */
export class ByteTarget {
  readonly bytes: Uint8Array;
  /** Where the next write begins. */
  at = 0;
  /** How many bytes there should have been, if it is known. */
  wantedBytes = 0;

  constructor(length: number) {
    this.bytes = allocateBytes(length);
  }

  /** Whether all that was written has found its place. */
  get isWhole(): boolean {
    return this.at <= this.bytes.byteLength;
  }
}

/** Thrown when what comes next does not fit. Not an error, like {@link unsure}. */
export const tooSmall: unknown = Symbol("too small");

/** Throws {@link tooSmall} unless there is room for so many bytes. */
export function checkRoom(target: ByteTarget, length: number): void {
  if (length <= target.bytes.byteLength - target.at) return;
  // No test can tell: without it, sizes in between would be tried.
  target.wantedBytes = target.at + length;
  throw tooSmall;
}

/** Writes a varint of 32 bits. */
export function writeVarint32(target: ByteTarget, value: number): void {
  const { bytes } = target;
  let at = target.at;
  let rest = value >>> 0;
  while (rest > 0x7f) {
    bytes[at++] = (rest & 0x7f) | 0x80;
    rest >>>= 7;
  }
  bytes[at++] = rest;
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
  if (typeof value !== "number" || value !== (value | 0)) throw unsure;
  if (value >= 0) writeVarint32(target, value);
  // Sign-extended (protobuf.dev, "Signed Integers").
  else writeVarint64(target, value, -1);
}

/** Writes a uint32. */
export function writeUint32(target: ByteTarget, value: unknown): void {
  if (typeof value !== "number" || value !== value >>> 0) throw unsure;
  writeVarint32(target, value);
}

/** Writes a sint32, whose lowest bit is its sign. */
export function writeSint32(target: ByteTarget, value: unknown): void {
  if (typeof value !== "number" || value !== (value | 0)) throw unsure;
  writeVarint32(target, (value << 1) ^ (value >> 31));
}

// No test can tell: a longer one would do, too.
const word = new DataView(new ArrayBuffer(8));

/** Writes an int64. */
export function writeInt64(target: ByteTarget, value: unknown): void {
  word.setBigInt64(0, toInt64(value), true);
  writeVarint64(target, word.getInt32(0, true), word.getInt32(4, true));
}

/** Writes a uint64. */
export function writeUint64(target: ByteTarget, value: unknown): void {
  word.setBigUint64(0, toUint64(value), true);
  writeVarint64(target, word.getInt32(0, true), word.getInt32(4, true));
}

/** Writes a sint64, whose lowest bit is its sign. */
export function writeSint64(target: ByteTarget, value: unknown): void {
  word.setBigInt64(0, toInt64(value), true);
  const low = word.getInt32(0, true);
  const high = word.getInt32(4, true);
  const sign = high >> 31;
  writeVarint64(target, (low << 1) ^ sign, ((high << 1) | (low >>> 31)) ^ sign);
}

/** Texts are for fields with `jstype = JS_STRING`, and for keys. */
function toInteger(value: unknown): bigint {
  if (typeof value === "bigint") return value;
  if (typeof value !== "string") throw unsure;
  return BigInt(value);
}

function toInt64(value: unknown): bigint {
  const integer = toInteger(value);
  if (BigInt.asIntN(64, integer) !== integer) throw unsure;
  return integer;
}

function toUint64(value: unknown): bigint {
  const integer = toInteger(value);
  if (BigInt.asUintN(64, integer) !== integer) throw unsure;
  return integer;
}

/** Writes a fixed64. */
export function writeFixed64(target: ByteTarget, value: unknown): void {
  word.setBigUint64(0, toUint64(value), true);
  writeWord(target, 8);
}

/** Writes an sfixed64. */
export function writeSfixed64(target: ByteTarget, value: unknown): void {
  word.setBigInt64(0, toInt64(value), true);
  writeWord(target, 8);
}

/** Writes a double. */
export function writeDouble(target: ByteTarget, value: unknown): void {
  if (typeof value !== "number") throw unsure;
  word.setFloat64(0, value, true);
  writeWord(target, 8);
}

/** Writes a float. A number that is too large for one is refused by protobuf-es. */
export function writeFloat(target: ByteTarget, value: unknown): void {
  if (typeof value !== "number" || (Number.isFinite(value) && !Number.isFinite(Math.fround(value)))) throw unsure;
  word.setFloat32(0, value, true);
  writeWord(target, 4);
}

/** Writes a fixed32. */
export function writeFixed32(target: ByteTarget, value: unknown): void {
  if (typeof value !== "number" || value !== value >>> 0) throw unsure;
  word.setUint32(0, value, true);
  writeWord(target, 4);
}

/** Writes an sfixed32. */
export function writeSfixed32(target: ByteTarget, value: unknown): void {
  if (typeof value !== "number" || value !== (value | 0)) throw unsure;
  word.setInt32(0, value, true);
  writeWord(target, 4);
}

function writeWord(target: ByteTarget, length: number): void {
  const { bytes, at } = target;
  for (let index = 0; index < length; index += 1) bytes[at + index] = word.getUint8(index);
  target.at = at + length;
}

/** Writes a bool. */
export function writeBool(target: ByteTarget, value: unknown): void {
  if (typeof value !== "boolean") throw unsure;
  target.bytes[target.at++] = value ? 1 : 0;
}

/** Writes a key of a map of bools, which is a text as all names of properties are. */
export function writeBoolKey(target: ByteTarget, key: string): void {
  if (key !== "true" && key !== "false") throw unsure;
  writeBool(target, key === "true");
}

/** Writes bytes behind their length. */
export function writeBytes(target: ByteTarget, value: unknown): void {
  if (!(value instanceof Uint8Array)) throw unsure;
  writeVarint32(target, value.byteLength);
  writeRaw(target, value);
}

/** Writes bytes as they are. */
export function writeRaw(target: ByteTarget, raw: unknown): void {
  if (!(raw instanceof Uint8Array)) throw unsure;
  // No test can tell: protobuf-es writes what does not fit, only slower.
  checkRoom(target, raw.byteLength);
  const { bytes, at } = target;
  bytes.set(raw, at);
  target.at = at + raw.byteLength;
}

/**
 * Writes the length of what was written from `start` on, for which `reserved` bytes are free there, and moves it if the
 * length needs more or fewer.
 *
 * @returns how many bytes the length has
 */
export function writeLengthBefore(target: ByteTarget, start: number, reserved: number): number {
  const { bytes, at } = target;
  const length = at - start - reserved;
  const needed = lengthBytes(length);
  // No test can tell: bytes that stay where they are only cost a call.
  if (needed !== reserved) bytes.copyWithin(start + needed, start + reserved, at);
  target.at = start;
  writeVarint32(target, length);
  target.at += length;
  return needed;
}

/** Returns how many bytes a length has as a varint. */
export function lengthBytes(length: number): number {
  if (length < 0x80) return 1;
  if (length < 0x4000) return 2;
  if (length < 0x20_0000) return 3;
  // No test can tell: it would take a quarter of a gigabyte.
  return length < 0x1000_0000 ? 4 : 5;
}
