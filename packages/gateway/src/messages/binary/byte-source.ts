import { unsure } from "../codegen/index.ts";
/** The bytes of a message, and how much of them was read. */
export class ByteSource {
  readonly bytes: Uint8Array;
  /** Where the next read begins. */
  at = 0;
  /** How many more messages may be open, one inside the other. */
  depthLeft: number;
  /** Whether messages keep the fields that their types do not have. */
  readonly keepsUnknown: boolean;
  #view: DataView | undefined;

  constructor(bytes: Uint8Array, depthMax: number, keepsUnknown: boolean) {
    this.bytes = bytes;
    this.depthLeft = depthMax;
    this.keepsUnknown = keepsUnknown;
  }

  /** The same bytes, for numbers of a fixed length. Made when it is first used: many messages have none. */
  get view(): DataView {
    const { buffer, byteOffset, byteLength } = this.bytes;
    return (this.#view ??= new DataView(buffer, byteOffset, byteLength));
  }
}

/**
 * The functions below read past the end as if there were zeroes: whoever reads a message sees at its end that it went
 * too far.
 */

/** Reads a varint, of which the lowest 32 bits count, as a signed integer. */
export function readVarint32(source: ByteSource): number {
  const { bytes } = source;
  let at = source.at;
  let value = 0;
  for (let shift = 0; shift < 70; shift += 7) {
    const byte = bytes[at++] ?? 0;
    // Shifts of 32 and more would begin again at 0.
    if (shift < 35) value |= (byte & 0x7f) << shift;
    if (byte < 0x80) {
      source.at = at;
      return value;
    }
  }
  throw unsure;
}

/** Reads a length or a tag: a varint that fits in 32 bits. */
export function readUnsigned(source: ByteSource): number {
  const { bytes, at } = source;
  const value = readVarint32(source) >>> 0;
  const length = source.at - at;
  if (length > 5 || (length === 5 && (bytes[at + 4] ?? 0) > 0x0f)) throw unsure;
  return value;
}

// No test can tell: a longer one would do, too.
const word = new DataView(new ArrayBuffer(8));

function readVarint64(source: ByteSource): void {
  const { bytes } = source;
  let at = source.at;
  let low = 0;
  let high = 0;
  for (let shift = 0; shift < 70; shift += 7) {
    const byte = bytes[at++] ?? 0;
    if (shift < 32) low |= (byte & 0x7f) << shift;
    // The fifth byte has the last four bits of the lower half.
    if (shift === 28) high = (byte & 0x70) >> 4;
    else if (shift > 28) high |= (byte & 0x7f) << (shift - 32);
    if (byte < 0x80) {
      source.at = at;
      word.setInt32(0, low, true);
      word.setInt32(4, high, true);
      return;
    }
  }
  throw unsure;
}

/** Reads an int64. */
export function readInt64(source: ByteSource): bigint {
  readVarint64(source);
  return word.getBigInt64(0, true);
}

/** Reads a uint64. */
export function readUint64(source: ByteSource): bigint {
  readVarint64(source);
  return word.getBigUint64(0, true);
}

/** Reads a sint64, whose lowest bit is its sign (protobuf.dev, "Signed Integers"). */
export function readSint64(source: ByteSource): bigint {
  readVarint64(source);
  const low = word.getInt32(0, true);
  const high = word.getInt32(4, true);
  const sign = -(low & 1);
  word.setInt32(0, ((low >>> 1) | (high << 31)) ^ sign, true);
  word.setInt32(4, (high >>> 1) ^ sign, true);
  return word.getBigInt64(0, true);
}

/** Reads a bool, which is true for any number but 0. */
export function readBool(source: ByteSource): boolean {
  readVarint64(source);
  return word.getInt32(0, true) !== 0 || word.getInt32(4, true) !== 0;
}

/** The integers of one byte as int64, which so need no memory. */
export const smallIntegers: readonly bigint[] = Array.from({ length: 0x80 }, (_, value) => BigInt(value));
