import { allocateBuffer, noBytes } from "./bytes.ts";
import { freeChunk, freedBytesMin, hastenCollection } from "./free-memory.ts";

/**
 * A body, or a message of one, that is collected in one buffer as it arrives.
 *
 * Buffers of megabytes are expensive: each brings the next garbage collection nearer. So the announced length is set
 * aside as soon as an eighth of it has arrived, and nothing is copied after that.
 */
export class CollectedBytes {
  /** The length that the client has announced; 0 if it has announced none. It may be set when it becomes known. */
  announcedBytes: number;
  readonly #limitBytes: number;
  #buffer: Uint8Array = noBytes;
  /** Bytes that have arrived. */
  byteLength = 0;

  /** @param limitBytes - the most that will be added */
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
    const before = this.#buffer;
    const size = byteLength <= announcedBytes ? sizeOf(announcedBytes, byteLength) : growthUnknown * before.byteLength;
    // Not zeroed, which is safe because only bytes that were written are ever passed on.
    this.#buffer = allocateBuffer(Math.max(byteLength, Math.min(size, this.#limitBytes)));
    hastenCollection(this.#buffer.byteLength);
    this.#buffer.set(before.subarray(0, filledBytes));
    if (before.byteLength >= freedBytesMin) freeChunk(before);
  }
}

/** Returns the size of a buffer. It stays in proportion to what has arrived, whatever was announced. */
function sizeOf(announcedBytes: number, arrivedBytes: number): number {
  const most = growthAnnounced * arrivedBytes;
  if (announcedBytes <= most) return announcedBytes;
  // No more than what is needed until then, because all of it is copied.
  return Math.min(most, Math.ceil(announcedBytes / growthAnnounced));
}

// How much memory may be taken before all has arrived, as a multiple of what has arrived.
const growthAnnounced = 8;
const growthUnknown = 2;
