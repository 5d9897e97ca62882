import { freeChunk, minFreedBytes, triggerEarlyScavenge } from "./free-memory.ts";

/** node's Buffer, if it exists. Slicing its pool takes a third to half the time of allocating an array. */
const nodeBuffer: typeof Buffer | undefined = globalThis.Buffer;

const encoder = new TextEncoder();

/** An empty array. */
export const noBytes: Uint8Array = new Uint8Array(0);

/** Returns an array with `length` arbitrary bytes. The caller must fill the whole array. */
export const allocateBytes: (length: number) => Uint8Array = nodeBuffer?.allocUnsafe ?? newBytes;

/** Returns `length` arbitrary bytes outside node's pool. A slice of the pool would keep the whole pool alive. */
export const allocateBuffer: (length: number) => Uint8Array = nodeBuffer?.allocUnsafeSlow ?? newBytes;

/** Copies a slice from node's pool, and returns other bytes unchanged. Call this function before buffering bytes. */
export function copyIfPooled(bytes: Uint8Array): Uint8Array {
  const { byteLength, buffer } = bytes;
  const isSlice = buffer.byteLength > 2 * byteLength;
  return isSlice && byteLength < maxSlicesBytes ? new Uint8Array(bytes) : bytes;
}

/** Encodes a string as UTF-8. */
export const toUtf8: (text: string) => Uint8Array =
  nodeBuffer === undefined ? (text) => encoder.encode(text) : (text) => nodeBuffer.from(text);

/** Joins pieces into one array. */
export function concatBytes(pieces: readonly Uint8Array[]): Uint8Array {
  if (nodeBuffer !== undefined) return nodeBuffer.concat(pieces);
  const joined = new Uint8Array(pieces.reduce((length, piece) => length + piece.byteLength, 0));
  let at = 0;
  for (const piece of pieces) {
    joined.set(piece, at);
    at += piece.byteLength;
  }
  return joined;
}

/** Number of bytes from which node allocates outside the pool: half of the pool, which has 64 KiB by default. */
const maxSlicesBytes = nodeBuffer === undefined ? 0 : nodeBuffer.poolSize / 2;

function newBytes(length: number): Uint8Array {
  return new Uint8Array(length);
}

/**
 * Collects a body, or one message in a body, in a single buffer. Large buffers cause garbage collections, so a buffer
 * with the announced length is allocated once an eighth of the bytes has arrived. No bytes are copied after that.
 */
export class CollectedBytes {
  /** The length in bytes that the client has announced, or 0 if no length is known. The length may be set later. */
  announcedBytes: number;
  /** Maximum number of bytes. The caller enforces this limit. */
  readonly #limitBytes: number;
  #buffer: Uint8Array = noBytes;
  byteLength = 0;

  constructor(announcedBytes: number, limitBytes: number) {
    this.announcedBytes = announcedBytes;
    this.#limitBytes = limitBytes;
  }

  /** Adds a copy of a piece. */
  add(piece: Uint8Array): void {
    const start = this.byteLength;
    this.byteLength += piece.byteLength;
    if (this.byteLength > this.#buffer.byteLength) this.#grow(start);
    this.#buffer.set(piece, start);
  }

  get bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.byteLength);
  }

  #grow(filledBytes: number): void {
    const { byteLength, announcedBytes } = this;
    const oldBuffer = this.#buffer;
    const size =
      byteLength <= announcedBytes ? sizeOf(announcedBytes, byteLength) : growthUnknown * oldBuffer.byteLength;
    // The buffer need not be zeroed, because only written bytes are passed on.
    this.#buffer = allocateBuffer(Math.max(byteLength, Math.min(size, this.#limitBytes)));
    triggerEarlyScavenge(this.#buffer.byteLength);
    this.#buffer.set(oldBuffer.subarray(0, filledBytes));
    if (oldBuffer.byteLength >= minFreedBytes) freeChunk(oldBuffer);
  }
}

/** Returns a buffer size in proportion to the received bytes, even if the announced length is much larger. */
function sizeOf(announcedBytes: number, arrivedBytes: number): number {
  const maxSize = growthAnnounced * arrivedBytes;
  if (announcedBytes <= maxSize) return announcedBytes;
  // An eighth of the announced length is enough, because the final buffer is allocated when an eighth has arrived.
  return Math.min(maxSize, Math.ceil(announcedBytes / growthAnnounced));
}

// Growth factors: the maximum buffer size as a multiple of the received bytes, with and without an announced length.
const growthAnnounced = 8;
const growthUnknown = 2;
