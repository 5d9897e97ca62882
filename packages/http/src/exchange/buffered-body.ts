import { allocateBuffer, noBytes } from "./bytes.ts";
import { freedBytesMin, nudgeScavenge } from "./free-memory.ts";

/**
 * A body's bytes that have arrived but were not read yet. The buffer uses memory in proportion to its length.
 *
 * Pieces are copied, because a piece is a view into the chunk in which it arrived. A one-byte piece would keep 64 KiB
 * alive, and a body can arrive as a million such pieces. The copies are stored and read in blocks, so that a slow
 * reader holds only one block, and the client may send as many more bytes.
 */
export class BufferedBody {
  readonly #blocks: Uint8Array[] = [];
  /** How many bytes are filled in the last block. */
  #filledBytes = 0;
  /** The bytes buffered. */
  byteLength = 0;

  /** Adds a copy of a piece. */
  add(piece: Uint8Array): void {
    for (let at = 0; at < piece.byteLength;) at += this.#fill(piece.subarray(at));
  }

  /** Removes the earliest block and returns it, or `undefined` if nothing is buffered. */
  shift(): Uint8Array | undefined {
    const block = this.#blocks.shift();
    const piece = this.#blocks.length === 0 ? block?.subarray(0, this.#filledBytes) : block;
    if (piece !== undefined) this.byteLength -= piece.byteLength;
    return piece;
  }

  /** Removes and returns everything buffered. */
  takeAll(): Uint8Array {
    if (this.#blocks.length === 1) return this.shift() as Uint8Array;
    // A separate allocation instead of a slice from node's pool, so that a program can transfer it.
    const joined = allocateBuffer(this.byteLength);
    for (let at = 0; at < joined.byteLength;) {
      const piece = this.shift() as Uint8Array;
      joined.set(piece, at);
      at += piece.byteLength;
    }
    return joined;
  }

  /** Copies as many bytes as fit into the last block, and returns their number. */
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
    // No spare space for the first piece, which is often the only one.
    const spareBytes = this.byteLength === 0 ? 0 : Math.max(blockBytesMin, this.byteLength * spareShare);
    // A separate allocation, because a slice from node's pool would keep the whole pool alive. The allocation is not
    // zeroed, which is safe because only bytes that were written are ever passed on.
    const block = allocateBuffer(Math.min(Math.max(bytes, spareBytes), blockBytesMax));
    this.#blocks.push(block);
    this.#filledBytes = 0;
    return block;
  }
}

/**
 * Where a body's bytes are copied to. "own" is a separate buffer, which the program may transfer. With "shared", small
 * copies share a block, which is cheaper, but only safe if the program never gets the bytes.
 */
export type BodyMemory = "own" | "shared";

/**
 * Returns a piece unchanged, or a copy if the piece would keep a much larger chunk alive. The reader keeps the piece
 * until it is parsed. A message with bytes fields keeps it longer, because these fields are views into the piece. Each
 * stream on a connection can have such a piece.
 *
 * A piece that is followed by other data in its chunk is copied as well: if the program transfers the piece's buffer,
 * as web streams do, everything else in that buffer is detached.
 *
 * @param memory - where copies are stored
 */
export function detachFromChunk(piece: Uint8Array, memory: BodyMemory = "own"): Uint8Array {
  const { byteLength, byteOffset, buffer } = piece;
  if (byteLength >= freedBytesMin) nudgeScavenge(byteLength);
  const keepsLittle = buffer.byteLength < copiedChunkBytesMin || buffer.byteLength <= byteLength * (1 + spareShare);
  if (keepsLittle && byteOffset + byteLength === buffer.byteLength) return piece;
  const copy =
    memory === "shared" && byteLength <= sharedBytesMax ? shareBlock(byteLength) : allocateBuffer(byteLength);
  copy.set(piece);
  return copy;
}

/** The block that small copies share, and how many bytes are used. */
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

/**
 * The largest block, in bytes: an HTTP/2 frame's size, so that buffered data is read in pieces as large as data that
 * arrives while the reader waits.
 */
export const blockBytesMax: number = 16 * 1024;
// The smallest block, in bytes. A block has about 200 bytes of overhead.
const blockBytesMin = 512;
/**
 * The smallest chunk, in bytes, from which small pieces are copied so that the chunk can be freed. A copy takes up to 3
 * µs, so smaller chunks are kept alive instead: a stream holds only one at a time, no larger than a block.
 */
const copiedChunkBytesMin = 16 * 1024;
/** A shared block's size, in bytes. A single copy keeps the complete block alive. */
const sharedBlockBytes = 8 * 1024;
/** The largest copy in a shared block, in bytes. */
const sharedBytesMax = 1024;
/** The spare memory that may be allocated, as a fraction of the bytes that have arrived. */
const spareShare = 1 / 8;
