import type { Duplex } from "node:stream";
import { freeBuffer, isSingleUse } from "../../http/index.ts";
import { type Backlog } from "../backlog.ts";
import { FrameFlag, maxFrameBytes, frameHeaderBytes, FrameType } from "./frame-numbers.ts";

// Initial size in bytes of the buffer that collects frames. The buffer grows if an event-loop turn sends more.
const scratchBytes = 4096;
// Maximum number of bytes in a copied piece of a body. Larger pieces are passed on without a copy.
const maxCopyBytes = 4096;
// Size in bytes above which the output is written before the turn ends. A handler that never awaits, or a chunk with
// many requests, could otherwise let the output grow without limit. The cost of a write is negligible for 64 KiB.
const maxCollectedFramesBytes = 64 * 1024;

/**
 * The output of a connection. All frames from one event-loop turn are sent in one write.
 *
 * A write takes as much CPU time as serving a dozen RPCs. So responses that become ready in the same event-loop turn,
 * such as those to requests in one chunk, are sent together.
 */
export class Output {
  /** Whether the socket's buffer is full. */
  congested = false;
  /** Maximum number of bytes in a field block. Only a server connection sets this limit. */
  maxBlockBytes: number = Number.POSITIVE_INFINITY;
  /** Number of field blocks sent. {@link dataFrames} counts the DATA frames sent. */
  headerBlocks = 0;
  dataFrames = 0;
  readonly #socket: Duplex;
  readonly #backlog: Backlog;
  readonly #drained: () => void;
  /** The dynamic table size update that precedes the first field block. */
  readonly #tableUpdate: Uint8Array;
  #scratch: Buffer = Buffer.allocUnsafeSlow(scratchBytes);
  #used = 0;
  #chunks: Uint8Array[] = [];
  /** Pieces that were added since the last flush and can be freed after sending. */
  #freeablePieces: Uint8Array[] | undefined;
  #scheduled = false;
  #closed = false;
  /** Number of bytes added since the last flush. */
  #queuedBytes = 0;

  /**
   * @param tableUpdate - a dynamic table size update that precedes the first field block (RFC 7541 §4.2), or empty
   * @param drained - called when the socket has drained
   */
  constructor(socket: Duplex, backlog: Backlog, tableUpdate: Uint8Array, drained: () => void) {
    this.#socket = socket;
    this.#backlog = backlog;
    this.#tableUpdate = tableUpdate;
    this.#drained = drained;
    socket.on("drain", () => {
      this.congested = false;
      backlog.count();
      this.#drained();
    });
  }

  /** Number of bytes in this output's buffer and in the socket's buffer. */
  get bufferedBytes(): number {
    return this.#queuedBytes + this.#socket.writableLength;
  }

  /** Sends a client's connection preface, which precedes all frames (RFC 9113 §3.4). */
  preface(bytes: Uint8Array): void {
    this.#append(bytes);
  }

  /** Adds a frame. A small payload is copied. A large payload must not change before sending. */
  frame(type: number, flags: number, streamId: number, payload: Uint8Array): void {
    if (type === FrameType.data) this.dataFrames++;
    const length = payload.byteLength;
    const isLarge = length > maxCopyBytes;
    const at = this.#reserve(isLarge ? frameHeaderBytes : frameHeaderBytes + length);
    writeFrameHeader(this.#scratch, at, length, type, flags, streamId);
    if (isLarge) this.#append(payload);
    else this.#scratch.set(payload, at + frameHeaderBytes);
  }

  /** Called after all frames for a piece were added. Frees the piece after sending if no other code uses the piece. */
  sent(piece: Uint8Array): void {
    if (!isSingleUse(piece)) return;
    (this.#freeablePieces ??= []).push(piece);
  }

  /** Adds a field block that consists of several encoded parts, in as many frames as required (RFC 9113 §4.3). */
  headerBlock(streamId: number, endStream: boolean, sections: readonly Uint8Array[]): void {
    const parts = this.headerBlocks++ === 0 ? [this.#tableUpdate, ...sections] : sections;
    let length = 0;
    for (const part of parts) length += part.byteLength;
    const endFlag = endStream ? FrameFlag.endStream : 0;
    if (length > maxFrameBytes) return this.#continuedBlock(streamId, endFlag, Buffer.concat(parts, length));
    let at = this.#reserve(frameHeaderBytes + length);
    writeFrameHeader(this.#scratch, at, length, FrameType.headers, FrameFlag.endHeaders | endFlag, streamId);
    at += frameHeaderBytes;
    for (const part of parts) {
      this.#scratch.set(part, at);
      at += part.byteLength;
    }
  }

  /** Adds a complete response: header block, body frame and trailer block. The last frame has END_STREAM. */
  respond(
    streamId: number,
    parts: readonly Uint8Array[],
    body: Uint8Array | undefined,
    trailer: Uint8Array | undefined,
  ): void {
    this.headerBlock(streamId, body === undefined && trailer === undefined, parts);
    if (body !== undefined) this.frame(FrameType.data, trailer === undefined ? FrameFlag.endStream : 0, streamId, body);
    if (trailer !== undefined) this.headerBlock(streamId, true, [trailer]);
  }

  /** Adds a frame with a payload of 32-bit numbers. */
  numbers(type: number, streamId: number, ...values: readonly number[]): void {
    const at = this.#reserve(frameHeaderBytes + values.length * 4);
    writeFrameHeader(this.#scratch, at, values.length * 4, type, 0, streamId);
    for (const [i, value] of values.entries()) this.#scratch.writeUInt32BE(value, at + frameHeaderBytes + i * 4);
  }

  /** Sends the collected frames, and ignores frames added later. */
  close(): void {
    this.#write();
    this.#closed = true;
  }

  /** Sends the frames collected in this event-loop turn. */
  flush(): void {
    this.#scheduled = false;
    this.#write();
  }

  #write(): void {
    if (this.#queuedBytes === 0) return;
    this.#flushScratch();
    const pieces = this.#chunks;
    const bytes = this.#queuedBytes;
    const written = this.#freeablePieces && freeAfterWrite(this.#freeablePieces);
    this.#chunks = [];
    this.#freeablePieces = undefined;
    this.#queuedBytes = 0;
    // Frames cannot be sent after this output was closed or the peer has disconnected.
    if (this.#closed || !this.#socket.writable) return;
    // Equivalent mutant: a single piece requires no cork, which costs more than this check.
    if (pieces.length > 1) this.#socket.cork();
    let hasCapacity = true;
    const last = pieces.at(-1);
    for (const piece of pieces) hasCapacity = this.#socket.write(piece, piece === last ? written : undefined);
    this.#socket.uncork();
    if (!hasCapacity) this.congested = true;
    this.#backlog.count(bytes);
  }

  #continuedBlock(streamId: number, endFlag: number, block: Buffer): void {
    this.frame(FrameType.headers, endFlag, streamId, block.subarray(0, maxFrameBytes));
    for (let at = maxFrameBytes; at < block.byteLength; at += maxFrameBytes) {
      const flags = at + maxFrameBytes >= block.byteLength ? FrameFlag.endHeaders : 0;
      this.frame(FrameType.continuation, flags, streamId, block.subarray(at, at + maxFrameBytes));
    }
  }

  #append(piece: Uint8Array): void {
    this.#flushScratch();
    this.#chunks.push(piece);
    this.#queuedBytes += piece.byteLength;
  }

  #flushScratch(): void {
    if (this.#used === 0) return;
    // The copy has the exact size, because the socket may buffer it. A slice from node's pool would keep 64 KiB alive.
    const allocate = this.#socket.writableLength > 0 ? Buffer.allocUnsafeSlow : Buffer.allocUnsafe;
    const copy = allocate(this.#used);
    this.#scratch.copy(copy, 0, 0, this.#used);
    this.#chunks.push(copy);
    this.#used = 0;
    if (this.#scratch.byteLength > scratchBytes * 16) this.#scratch = Buffer.allocUnsafeSlow(scratchBytes);
  }

  #reserve(bytes: number): number {
    if (this.#queuedBytes > maxCollectedFramesBytes) this.#write();
    const at = this.#used;
    this.#used += bytes;
    this.#queuedBytes += bytes;
    if (this.#used > this.#scratch.byteLength) {
      const larger = Buffer.allocUnsafeSlow(Math.max(this.#scratch.byteLength * 2, this.#used));
      this.#scratch.copy(larger, 0, 0, at);
      this.#scratch = larger;
    }
    if (!this.#scheduled) {
      this.#scheduled = true;
      setImmediate(flushOutput, this);
    }
    return at;
  }
}

/** Returns a write callback that frees the pieces. After an error, the pieces are left to garbage collection. */
function freeAfterWrite(pieces: readonly Uint8Array[]): (error: Error | null | undefined) => void {
  return (error) => {
    if (error === null || error === undefined) for (const { buffer } of pieces) freeBuffer(buffer);
  };
}

function flushOutput(output: Output): void {
  output.flush();
}

function writeFrameHeader(
  into: Buffer,
  at: number,
  length: number,
  type: number,
  flags: number,
  streamId: number,
): void {
  into[at] = length >>> 16;
  into[at + 1] = length >>> 8;
  into[at + 2] = length;
  into[at + 3] = type;
  into[at + 4] = flags;
  into[at + 5] = streamId >>> 24;
  into[at + 6] = streamId >>> 16;
  into[at + 7] = streamId >>> 8;
  into[at + 8] = streamId;
}
