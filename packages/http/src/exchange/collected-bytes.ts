import { allocateBuffer, noBytes } from "./bytes.ts";
import { freeChunk, freedBytesMin, nudgeScavenge } from "./free-memory.ts";

/**
 * A body, or one message in a body, that is collected in one buffer as it arrives.
 *
 * Buffers of megabytes are expensive, because they cause garbage collections. So a buffer of the announced length is
 * allocated as soon as an eighth has arrived. After that, nothing is copied to a larger buffer.
 */
export class CollectedBytes {
  /** The length that the client has announced, or 0 if none. The length may be set later, when it becomes known. */
  announcedBytes: number;
  readonly #limitBytes: number;
  #buffer: Uint8Array = noBytes;
  /** How many bytes have arrived. */
  byteLength = 0;

  /** @param limitBytes - the maximum number of bytes that will be added */
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

  /** Returns all that has arrived. */
  get bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.byteLength);
  }

  #grow(filledBytes: number): void {
    const { byteLength, announcedBytes } = this;
    const oldBuffer = this.#buffer;
    const size =
      byteLength <= announcedBytes ? sizeOf(announcedBytes, byteLength) : growthUnknown * oldBuffer.byteLength;
    // The buffer is not zeroed, which is safe because only bytes that were written are ever passed on.
    this.#buffer = allocateBuffer(Math.max(byteLength, Math.min(size, this.#limitBytes)));
    nudgeScavenge(this.#buffer.byteLength);
    this.#buffer.set(oldBuffer.subarray(0, filledBytes));
    if (oldBuffer.byteLength >= freedBytesMin) freeChunk(oldBuffer);
  }
}

/** Returns the buffer's size: in proportion to what has arrived, even if much more was announced. */
function sizeOf(announcedBytes: number, arrivedBytes: number): number {
  const sizeMax = growthAnnounced * arrivedBytes;
  if (announcedBytes <= sizeMax) return announcedBytes;
  // When an eighth has arrived, this buffer is replaced by the final one, so it need not be larger than an eighth.
  return Math.min(sizeMax, Math.ceil(announcedBytes / growthAnnounced));
}

// How much memory is allocated while the body arrives, as a multiple of what has arrived.
const growthAnnounced = 8;
const growthUnknown = 2;
