import { allocateBuffer, noBytes } from "./bytes.ts";
import { freedBytesMin, nudgeScavenge } from "./free-memory.ts";

/**
 * The part of a body that has arrived but was not read yet, in memory proportional to its length.
 *
 * It is copied, because a piece is a view of the chunk it arrived in: a piece of one byte could keep 64 KiB alive, and
 * a body could arrive as a million of them. It is stored and read in blocks, so that a slow reader holds one block,
 * which is also what the client may then send.
 */
export class BufferedBody {
  readonly #blocks: Uint8Array[] = [];
  /** The bytes of the last block that are filled. */
  #filledBytes = 0;
  /** The bytes buffered. */
  byteLength = 0;

  /** Adds a copy of a piece. */
  add(piece: Uint8Array): void {
    for (let at = 0; at < piece.byteLength;) at += this.#fill(piece.subarray(at));
  }

  /** Removes and returns the earliest block; `undefined` if nothing is buffered. */
  shift(): Uint8Array | undefined {
    const block = this.#blocks.shift();
    const piece = this.#blocks.length === 0 ? block?.subarray(0, this.#filledBytes) : block;
    if (piece !== undefined) this.byteLength -= piece.byteLength;
    return piece;
  }

  /** Removes and returns everything buffered. */
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

  /** Copies as many of `bytes` as fit in the last block, and returns their number. */
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
    // Outside node's pool, because a slice would keep the whole pool alive. Not zeroed, which is safe because only
    // bytes that were written are ever passed on.
    const block = allocateBuffer(Math.min(Math.max(bytes, spareBytes), blockBytesMax));
    this.#blocks.push(block);
    this.#filledBytes = 0;
    return block;
  }
}

/**
 * Where the bytes of a body are copied to. "own": to a separate buffer, which a program may transfer. "shared": small
 * ones to a block shared with others, which is cheaper, for bytes that are not passed to the program.
 */
export type BodyMemory = "own" | "shared";

/**
 * Returns a piece unchanged, or a copy if it would keep a much larger chunk alive while it is read, or as long as its
 * message, whose bytes fields are views. Each stream of a connection can have such a piece.
 *
 * A piece that is followed by other data in its chunk is also copied, to a separate buffer: a program that transfers
 * the buffer of its bytes, as web streams do, detaches everything else in it.
 *
 * @param memory - where to copy to
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

/** The block that small copies share, and how many of its bytes are used. */
let shared: Uint8Array = noBytes;
let sharedBytes = 0;

/** Returns a part of a shared block, with arbitrary content. A separate buffer takes 0.4 µs more. */
function shareBlock(byteLength: number): Uint8Array {
  if (sharedBytes + byteLength > shared.byteLength) {
    shared = allocateBuffer(sharedBlockBytes);
    sharedBytes = 0;
  }
  sharedBytes += byteLength;
  return shared.subarray(sharedBytes - byteLength, sharedBytes);
}

/** The largest block, in bytes: the size of an HTTP/2 frame, which a waiting reader also gets in one piece. */
export const blockBytesMax: number = 16 * 1024;
// The smallest block, in bytes: a block has an overhead of about 200 bytes.
const blockBytesMin = 512;
/**
 * A small piece of a chunk of at least so many bytes is copied, so that the chunk can be freed. That takes up to 3 µs,
 * so smaller chunks are kept: a stream holds only one of them at a time, which is not larger than a block.
 */
const copiedChunkBytesMin = 16 * 1024;
/** The size of a shared block, in bytes, all of which a single copy can keep alive. */
const sharedBlockBytes = 8 * 1024;
/** The largest copy in a shared block, in bytes. */
const sharedBytesMax = 1024;
/** How much more memory may be allocated than has arrived, as a share of what has arrived. */
const spareShare = 1 / 8;
