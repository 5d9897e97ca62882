import { allocateBuffer, noBytes } from "./bytes.ts";
import { freedBytesMin, hastenCollection } from "./free-memory.ts";

/**
 * The part of a body that has arrived and was not read yet, in memory proportional to its length.
 *
 * It is copied, because a piece is a view of the chunk it came in: a piece of one byte could keep 64 KiB alive, and a
 * body could come as a million of them. It is kept and read in blocks, so that what a slow reader has in hand, and the
 * client may replace, is one block.
 */
export class HeldBody {
  readonly #blocks: Uint8Array[] = [];
  /** How much of the last block is filled, in bytes. */
  #filledBytes = 0;
  /** Bytes held. */
  byteLength = 0;

  /** Adds a copy of a piece. */
  add(piece: Uint8Array): void {
    for (let at = 0; at < piece.byteLength;) at += this.#fill(piece.subarray(at));
  }

  /** Removes and returns the earliest block; `undefined` when nothing is held. */
  shift(): Uint8Array | undefined {
    const block = this.#blocks.shift();
    const piece = this.#blocks.length === 0 ? block?.subarray(0, this.#filledBytes) : block;
    if (piece !== undefined) this.byteLength -= piece.byteLength;
    return piece;
  }

  /** Removes and returns all that is held. */
  takeAll(): Uint8Array {
    if (this.#blocks.length === 1) return this.shift() as Uint8Array;
    // Outside node's pool, so that a program can transfer it.
    const whole = allocateBuffer(this.byteLength);
    for (let at = 0; at < whole.byteLength;) {
      const piece = this.shift() as Uint8Array;
      whole.set(piece, at);
      at += piece.byteLength;
    }
    return whole;
  }

  /** Copies as much of `bytes` as the last block takes, and returns how much. */
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
    // The first piece is often the only one.
    const spareBytes = this.byteLength === 0 ? 0 : Math.max(blockBytesMin, this.byteLength * spareShare);
    // Outside node's pool, of which a slice would keep all. Not zeroed, which is safe because only bytes that were
    // written are ever passed on.
    const block = allocateBuffer(Math.min(Math.max(bytes, spareBytes), heldBlockBytesMax));
    this.#blocks.push(block);
    this.#filledBytes = 0;
    return block;
  }
}

/**
 * Where the bytes of a body may be. "own": in memory of their own, which a program may transfer. "shared": small ones in a
 * block with others, which is cheaper, for bytes that no program sees.
 */
export type BodyMemory = "own" | "shared";

/**
 * Returns a piece as it is, or a copy of one that would keep a much larger chunk alive while it is read, or for as long
 * as there is its message, of which bytes are views: each of a connection's streams can have such a piece.
 *
 * A copy, too, of one that has something behind it in its chunk, and each in memory of its own: a program that transfers
 * the memory of its bytes, as streams of the web do, empties whatever else is there.
 *
 * @param memory - where a copy may be
 */
export function ownPiece(piece: Uint8Array, memory: BodyMemory = "own"): Uint8Array {
  const { byteLength, byteOffset, buffer } = piece;
  if (byteLength >= freedBytesMin) hastenCollection(byteLength);
  const keepsLittle = buffer.byteLength < copiedChunkBytesMin || buffer.byteLength <= byteLength * (1 + spareShare);
  if (keepsLittle && byteOffset + byteLength === buffer.byteLength) return piece;
  const copy =
    memory === "shared" && byteLength <= sharedBytesMax ? shareBlock(byteLength) : allocateBuffer(byteLength);
  copy.set(piece);
  return copy;
}

/** The block that small copies share, and how many of its bytes are taken. */
let shared: Uint8Array = noBytes;
let sharedBytes = 0;

/** Returns a part of a block, with arbitrary content: memory of its own takes 0.4 µs more. */
function shareBlock(byteLength: number): Uint8Array {
  if (sharedBytes + byteLength > shared.byteLength) {
    shared = allocateBuffer(sharedBlockBytes);
    sharedBytes = 0;
  }
  sharedBytes += byteLength;
  return shared.subarray(sharedBytes - byteLength, sharedBytes);
}

/** Bytes of a block at most: as many as a frame of HTTP/2 has, which a reader that waits gets in one piece too. */
export const heldBlockBytesMax: number = 16 * 1024;
// Bytes: a block costs some 200 of its own.
const blockBytesMin = 512;
/**
 * A small piece of a chunk of at least so many bytes is copied, so that the chunk can be freed. That takes up to 3 µs, so
 * smaller chunks are kept: a stream has no more than one of them in hand, which is no more than a block.
 */
const copiedChunkBytesMin = 16 * 1024;
/** Bytes of a block that copies share, all of which a single one of them can keep. */
const sharedBlockBytes = 8 * 1024;
/** Bytes of the largest copy that shares a block. */
const sharedBytesMax = 1024;
/** How much more memory may be taken than has arrived, as a share of that. */
const spareShare = 1 / 8;
