import type { Duplex } from "node:stream";
import { Flag, frameBytesMax, frameHeaderBytes, FrameType, writeFrameHeader } from "./frame.ts";

// Frames are collected in a buffer of this size first; it grows for a turn that has more to say.
const scratchBytes = 4096;
// From this size on a piece of a body is passed on as it is rather than copied.
const copyBytesMax = 4096;
// What may be collected in a turn. A handler that never waits would otherwise keep the turn from ending while
// this grows; at such a size a write is not dear any more.
const collectedBytesMax = 64 * 1024;

/**
 * What goes out on a connection: all frames of a turn of the event loop in one write.
 *
 * A write costs as much as a dozen calls. The answers to the requests of one chunk, and those that one
 * message from a worker or a database completes, leave together.
 */
export class Output {
  readonly #socket: Duplex;
  readonly #drained: () => void;
  #scratch: Buffer = Buffer.allocUnsafe(scratchBytes);
  #used = 0;
  #sealed: Uint8Array[] = [];
  #scheduled = false;
  #congested = false;
  #closed = false;
  /** Bytes that were queued here since the last flush. */
  #queuedBytes = 0;

  /** @param drained - called when the socket takes more again */
  constructor(socket: Duplex, drained: () => void) {
    this.#socket = socket;
    this.#drained = drained;
    socket.on("drain", () => {
      this.#congested = false;
      this.#drained();
    });
  }

  /** Whether the socket has more than it wants already; what can wait had better wait. */
  get congested(): boolean {
    return this.#congested;
  }

  /** Bytes that wait here and in the socket. */
  get waitingBytes(): number {
    return this.#queuedBytes + this.#socket.writableLength;
  }

  /** Adds a frame. The payload is copied or, if it is large, held until it is sent. */
  frame(type: number, flags: number, streamId: number, payload: Uint8Array): void {
    const length = payload.byteLength;
    const isLarge = length > copyBytesMax;
    const at = this.#reserve(isLarge ? frameHeaderBytes : frameHeaderBytes + length);
    writeFrameHeader(this.#scratch, at, length, type, flags, streamId);
    if (isLarge) this.#hold(payload);
    else this.#scratch.set(payload, at + frameHeaderBytes);
    if (this.#queuedBytes > collectedBytesMax) this.#write();
  }

  /** Adds a header block made of parts, in as many frames as it takes (RFC 9113 §4.3). */
  headerBlock(streamId: number, endStream: boolean, parts: readonly Uint8Array[]): void {
    let length = 0;
    for (const part of parts) length += part.byteLength;
    const endFlag = endStream ? Flag.endStream : 0;
    if (length > frameBytesMax) return this.#continuedBlock(streamId, endFlag, Buffer.concat(parts, length));
    let at = this.#reserve(frameHeaderBytes + length);
    writeFrameHeader(this.#scratch, at, length, FrameType.headers, Flag.endHeaders | endFlag, streamId);
    at += frameHeaderBytes;
    for (const part of parts) {
      this.#scratch.set(part, at);
      at += part.byteLength;
    }
  }

  /** Adds a frame whose payload is numbers of 32 bits. */
  numbers(type: number, streamId: number, ...values: readonly number[]): void {
    const at = this.#reserve(frameHeaderBytes + values.length * 4);
    writeFrameHeader(this.#scratch, at, values.length * 4, type, 0, streamId);
    for (const [i, value] of values.entries()) this.#scratch.writeUInt32BE(value, at + frameHeaderBytes + i * 4);
  }

  /** Sends what has been collected and takes nothing more. */
  close(): void {
    if (this.#closed) return;
    this.#write();
    this.#closed = true;
  }

  /** The turn is over: sends what has been collected in it. */
  flush(): void {
    this.#scheduled = false;
    this.#write();
  }

  #write(): void {
    if (this.#queuedBytes === 0) return;
    this.#seal();
    const pieces = this.#sealed;
    this.#sealed = [];
    this.#queuedBytes = 0;
    // Behind our own end, or when the peer has gone, there is nobody to tell.
    if (this.#closed || !this.#socket.writable) return;
    if (pieces.length > 1) this.#socket.cork();
    let more = true;
    for (const piece of pieces) more = this.#socket.write(piece);
    if (pieces.length > 1) this.#socket.uncork();
    if (!more) this.#congested = true;
  }

  #continuedBlock(streamId: number, endFlag: number, block: Buffer): void {
    this.frame(FrameType.headers, endFlag, streamId, block.subarray(0, frameBytesMax));
    for (let at = frameBytesMax; at < block.byteLength; at += frameBytesMax) {
      const flags = at + frameBytesMax >= block.byteLength ? Flag.endHeaders : 0;
      this.frame(FrameType.continuation, flags, streamId, block.subarray(at, at + frameBytesMax));
    }
  }

  #hold(piece: Uint8Array): void {
    this.#seal();
    this.#sealed.push(piece);
    this.#queuedBytes += piece.byteLength;
  }

  /** Moves what is in the scratch buffer out of it, so that it can be used again. */
  #seal(): void {
    if (this.#used === 0) return;
    // A copy of just that size: the socket may hold on to it.
    this.#sealed.push(Buffer.from(this.#scratch.subarray(0, this.#used)));
    this.#used = 0;
    if (this.#scratch.byteLength > scratchBytes * 16) this.#scratch = Buffer.allocUnsafe(scratchBytes);
  }

  #reserve(bytes: number): number {
    const at = this.#used;
    this.#used += bytes;
    this.#queuedBytes += bytes;
    if (this.#used > this.#scratch.byteLength) {
      const larger = Buffer.allocUnsafe(Math.max(this.#scratch.byteLength * 2, this.#used));
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

function flushOutput(output: Output): void {
  output.flush();
}
