import { allocateBuffer, noBytes } from "./bytes.ts";
import { freeChunk, freedBytesMin, triggerEarlyScavenge } from "./free-memory.ts";

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
    if (oldBuffer.byteLength >= freedBytesMin) freeChunk(oldBuffer);
  }
}

/** Returns a buffer size in proportion to the received bytes, even if the announced length is much larger. */
function sizeOf(announcedBytes: number, arrivedBytes: number): number {
  const sizeMax = growthAnnounced * arrivedBytes;
  if (announcedBytes <= sizeMax) return announcedBytes;
  // An eighth of the announced length is enough, because the final buffer is allocated when an eighth has arrived.
  return Math.min(sizeMax, Math.ceil(announcedBytes / growthAnnounced));
}

// Growth factors: the maximum buffer size as a multiple of the received bytes, with and without an announced length.
const growthAnnounced = 8;
const growthUnknown = 2;
