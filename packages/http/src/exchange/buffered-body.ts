import { allocateBuffer, noBytes } from "./bytes.ts";
import { freedBytesMin, nudgeScavenge } from "./free-memory.ts";

/**
 * The received bytes of a body that were not read yet. The buffer uses memory in proportion to the number of bytes.
 *
 * Pieces are copied, because a piece is a view into a chunk. A one-byte piece would keep 64 KiB alive, and a body can
 * arrive as a million one-byte pieces. The copies are stored and read in blocks. A slow reader holds only one block,
 * and the client may send further bytes.
 */
export class BufferedBody {
  readonly #blocks: Uint8Array[] = [];
  /** Number of bytes that are filled in the last block. */
  #filledBytes = 0;
  /** Number of buffered bytes. */
  byteLength = 0;

  /** Adds a copy of a piece. */
  add(piece: Uint8Array): void {
    for (let at = 0; at < piece.byteLength;) at += this.#fill(piece.subarray(at));
  }

  /** Removes and returns the earliest block. Returns `undefined` if no bytes are buffered. */
  shift(): Uint8Array | undefined {
    const block = this.#blocks.shift();
    const piece = this.#blocks.length === 0 ? block?.subarray(0, this.#filledBytes) : block;
    if (piece !== undefined) this.byteLength -= piece.byteLength;
    return piece;
  }

  /** Removes and returns all buffered bytes. */
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
    const spareBytes = this.byteLength === 0 ? 0 : Math.max(blockBytesMin, this.byteLength * spareShare);
    // Allocates a separate block, because a slice from node's pool would keep the whole pool alive. The block need not
    // be zeroed, because only written bytes are passed on.
    const block = allocateBuffer(Math.min(Math.max(bytes, spareBytes), blockBytesMax));
    this.#blocks.push(block);
    this.#filledBytes = 0;
    return block;
  }
}

/**
 * The memory for copies of a body's bytes. "own" is a separate buffer, which the program may transfer. With "shared",
 * small copies share a block. Sharing is cheaper, but only safe if the program never gets the bytes.
 */
export type BodyMemory = "own" | "shared";

/**
 * Returns a piece unchanged, or a copy if the piece would keep a much larger chunk alive. The reader keeps the piece
 * until the message is parsed. A message with bytes fields keeps the piece longer, because these fields are views into
 * the piece. Each stream on a connection can keep a piece.
 *
 * A piece before other data in the same chunk is also copied. Web streams transfer the buffer of a piece, and a
 * transfer detaches all other data in the buffer.
 *
 * @param memory - the memory in which copies are stored
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

/**
 * Maximum number of bytes in a block. HTTP/2 frames have the same maximum size, so buffered data is read in pieces as
 * large as data that arrives while the reader waits.
 */
export const blockBytesMax: number = 16 * 1024;
// Minimum number of bytes in a block. Each block has about 200 bytes of overhead.
const blockBytesMin = 512;
/**
 * Minimum number of bytes in a chunk from which small pieces are copied, so that the chunk can be freed. A copy takes
 * up to 3 µs. Smaller chunks are kept alive instead, because a stream holds only one chunk, no larger than a block.
 */
const copiedChunkBytesMin = 16 * 1024;
/** Number of bytes in a shared block. A single copy keeps the complete block alive. */
const sharedBlockBytes = 8 * 1024;
/** Maximum number of bytes in a copy that is stored in a shared block. */
const sharedBytesMax = 1024;
/** Maximum spare memory as a fraction of the received bytes. */
const spareShare = 1 / 8;
