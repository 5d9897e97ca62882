import { allocateBuffer, noBytes } from "./bytes.ts";
import { minFreedBytes, triggerEarlyScavenge } from "./free-memory.ts";

/**
 * The received bytes of a body that were not read yet. Pieces are copied, because a one-byte piece would keep a chunk
 * of 64 KiB alive, and a body can arrive as a million pieces. The copies are stored and read in blocks, so that a slow
 * reader holds only one block.
 */
export class BufferedBody {
  readonly #blocks: Uint8Array[] = [];
  /** Number of bytes that are filled in the last block. */
  #filledBytes = 0;
  byteLength = 0;

  /** Adds a copy of a piece. */
  add(piece: Uint8Array): void {
    for (let at = 0; at < piece.byteLength;) at += this.#fill(piece.subarray(at));
  }

  /** Removes and returns the earliest block, if any. */
  shift(): Uint8Array | undefined {
    const block = this.#blocks.shift();
    const piece = this.#blocks.length === 0 ? block?.subarray(0, this.#filledBytes) : block;
    if (piece !== undefined) this.byteLength -= piece.byteLength;
    return piece;
  }

  takeAll(): Uint8Array {
    if (this.#blocks.length === 1) return this.shift() as Uint8Array;
    // Allocates a separate buffer, because a program cannot transfer a slice from node's pool.
    const joined = allocateBuffer(this.byteLength);
    for (let at = 0; at < joined.byteLength;) {
      const piece = this.shift() as Uint8Array;
      joined.set(piece, at);
      at += piece.byteLength;
    }
    return joined;
  }

  /** Copies as many bytes as fit into the last block. Returns the number of copied bytes. */
  #fill(bytes: Uint8Array): number {
    let block = this.#blocks.at(-1);
    if (block === undefined || this.#filledBytes === block.byteLength) block = this.#addBlock(bytes.byteLength);
    const part = bytes.subarray(0, block.byteLength - this.#filledBytes);
    block.set(part, this.#filledBytes);
    this.#filledBytes += part.byteLength;
    this.byteLength += part.byteLength;
    return part.byteLength;
  }

  #addBlock(bytes: number): Uint8Array {
    // The first piece gets no spare space, because a body often consists of one piece.
    const spareBytes = this.byteLength === 0 ? 0 : Math.max(minBlockBytes, this.byteLength * spareShare);
    // Allocated outside node's pool, which a slice would keep alive. Not zeroed, because only written bytes are read.
    const block = allocateBuffer(Math.min(Math.max(bytes, spareBytes), maxBlockBytes));
    this.#blocks.push(block);
    this.#filledBytes = 0;
    return block;
  }
}

/** The memory for copies: an "own" buffer, or a cheaper "shared" block that is unsafe to pass to the program. */
export type BodyMemory = "own" | "shared";

/**
 * Returns a piece unchanged, or a copy if the piece would keep a much larger chunk alive. The reader keeps the piece
 * until the message is parsed, and a message with bytes fields keeps it longer.
 *
 * A piece is also copied if other data follows in its chunk, because web streams may transfer the piece's buffer, which
 * detaches the other data.
 */
export function detachFromChunk(piece: Uint8Array, memory: BodyMemory = "own"): Uint8Array {
  const { byteLength, byteOffset, buffer } = piece;
  if (byteLength >= minFreedBytes) triggerEarlyScavenge(byteLength);
  const keepsLittle = buffer.byteLength < minCopiedChunkBytes || buffer.byteLength <= byteLength * (1 + spareShare);
  if (keepsLittle && byteOffset + byteLength === buffer.byteLength) return piece;
  const copy =
    memory === "shared" && byteLength <= maxSharedBytes ? shareBlock(byteLength) : allocateBuffer(byteLength);
  copy.set(piece);
  return copy;
}

/** The block that small copies share. `sharedBytes` is the number of used bytes. */
let sharedBlock: Uint8Array = noBytes;
let sharedBytes = 0;

/** Returns a slice from a shared block, with arbitrary content. Allocating a separate buffer takes 0.4 µs longer. */
function shareBlock(byteLength: number): Uint8Array {
  if (sharedBytes + byteLength > sharedBlock.byteLength) {
    sharedBlock = allocateBuffer(sharedBlockBytes);
    sharedBytes = 0;
  }
  sharedBytes += byteLength;
  return sharedBlock.subarray(sharedBytes - byteLength, sharedBytes);
}

/** Maximum bytes in a block, as in an HTTP/2 frame, so that buffered data is read in pieces of the same size. */
export const maxBlockBytes: number = 16 * 1024;
// Minimum number of bytes in a block. Each block has about 200 bytes of overhead.
const minBlockBytes = 512;
/** Minimum chunk size in bytes for copying small pieces. A piece of a smaller chunk is not copied. */
const minCopiedChunkBytes = 16 * 1024;
/** Number of bytes in a shared block. A single copy keeps the complete block alive. */
const sharedBlockBytes = 8 * 1024;
/** Maximum number of bytes in a copy that is stored in a shared block. */
const maxSharedBytes = 1024;
/** Maximum spare memory as a fraction of the received bytes. */
const spareShare = 1 / 8;
