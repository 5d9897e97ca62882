import { bailOut } from "../codegen.ts";

/** The bytes of a message, with the current read position. */
export class ByteSource {
  readonly bytes: Uint8Array;
  /** The offset at which the next read starts. */
  at = 0;
  /** Number of further message levels that may be entered. */
  depthLeft: number;
  /** Whether unknown fields are kept in messages. */
  readonly keepsUnknown: boolean;
  #view: DataView | undefined;

  constructor(bytes: Uint8Array, maxDepth: number, keepsUnknown: boolean) {
    this.bytes = bytes;
    this.depthLeft = maxDepth;
    this.keepsUnknown = keepsUnknown;
  }

  /** A view for reading fixed-length numbers. The view is created on first use, because many messages need none. */
  get view(): DataView {
    const { buffer, byteOffset, byteLength } = this.bytes;
    return (this.#view ??= new DataView(buffer, byteOffset, byteLength));
  }
}

// The functions below read zeroes after the last byte. Readers check afterwards whether they are past the end.

/** Reads a varint's lowest 32 bits as a signed integer. */
export function readVarint32(source: ByteSource): number {
  const { bytes } = source;
  let at = source.at;
  let value = 0;
  for (let shift = 0; shift < 70; shift += 7) {
    const byte = bytes[at++] ?? 0;
    // The shift count is checked, because JavaScript reduces shift counts modulo 32.
    if (shift < 35) value |= (byte & 0x7f) << shift;
    if (byte < 0x80) {
      source.at = at;
      return value;
    }
  }
  throw bailOut;
}

/** Reads a length or a tag, which is a varint that fits in 32 bits. */
export function readUnsigned(source: ByteSource): number {
  const { bytes, at } = source;
  const value = readVarint32(source) >>> 0;
  const length = source.at - at;
  if (length > 5 || (length === 5 && (bytes[at + 4] ?? 0) > 0x0f)) throw bailOut;
  return value;
}

// equivalent mutant: a longer buffer works as well.
const scratchView = new DataView(new ArrayBuffer(8));

function readVarint64(source: ByteSource): void {
  const { bytes } = source;
  let at = source.at;
  let low = 0;
  let high = 0;
  for (let shift = 0; shift < 70; shift += 7) {
    const byte = bytes[at++] ?? 0;
    if (shift < 32) low |= (byte & 0x7f) << shift;
    // The fifth byte has the lower half's last four bits.
    if (shift === 28) high = (byte & 0x70) >> 4;
    else if (shift > 28) high |= (byte & 0x7f) << (shift - 32);
    if (byte < 0x80) {
      source.at = at;
      scratchView.setInt32(0, low, true);
      scratchView.setInt32(4, high, true);
      return;
    }
  }
  throw bailOut;
}

/** Reads an int64. */
export function readInt64(source: ByteSource): bigint {
  readVarint64(source);
  return scratchView.getBigInt64(0, true);
}

/** Reads a uint64. */
export function readUint64(source: ByteSource): bigint {
  readVarint64(source);
  return scratchView.getBigUint64(0, true);
}

/** Reads a sint64. The lowest bit is the sign (protobuf.dev, "Signed Integers"). */
export function readSint64(source: ByteSource): bigint {
  readVarint64(source);
  const low = scratchView.getInt32(0, true);
  const high = scratchView.getInt32(4, true);
  const sign = -(low & 1);
  scratchView.setInt32(0, ((low >>> 1) | (high << 31)) ^ sign, true);
  scratchView.setInt32(4, (high >>> 1) ^ sign, true);
  return scratchView.getBigInt64(0, true);
}

/** Reads a bool. Any number other than 0 is true. */
export function readBool(source: ByteSource): boolean {
  readVarint64(source);
  return scratchView.getInt32(0, true) !== 0 || scratchView.getInt32(4, true) !== 0;
}

/** The bigints for one-byte varints, so that reading a small integer allocates nothing. */
export const smallIntegers: readonly bigint[] = Array.from({ length: 0x80 }, (_, value) => BigInt(value));
