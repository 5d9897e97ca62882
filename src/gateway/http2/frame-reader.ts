import { connectionPreface, frameBytesMax, frameHeaderBytes } from "./frame-numbers.ts";
import { ConnectionError, ErrorCode } from "./http2-error.ts";

/** A frame in place: its payload is `length` bytes from `from` on in `bytes`. */
export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly bytes: Buffer;
  readonly from: number;
  readonly length: number;
}

/** Receives the frames of a connection. */
export interface FrameReceiver {
  /** Receives a frame, which is valid only until this returns: the reader reuses one object for all frames. */
  take(frame: Frame): void;
}

/**
 * Cuts the bytes of a client into frames (RFC 9113 §4.1). Frames are read in place; only one that is split between
 * chunks is copied, once, into memory that grows with what has arrived of it.
 */
export class FrameReader {
  /** Set after a connection error: no more frames are handed on, not even from the same chunk. */
  stopped = false;
  readonly #receiver: FrameReceiver;
  /** An incomplete frame, and how many of its bytes have arrived. */
  #begun: Buffer = nothing;
  #begunBytes = 0;
  readonly #frame = { type: 0, flags: 0, streamId: 0, bytes: this.#begun, from: 0, length: 0 };
  #prefaceRead = 0;

  constructor(receiver: FrameReceiver) {
    this.#receiver = receiver;
  }

  /** @throws ConnectionError for a wrong preface or a frame that is too large, and what the receiver throws */
  read(chunk: Buffer): void {
    const end = chunk.byteLength;
    let at = this.#prefaceRead < connectionPreface.byteLength ? this.#readPreface(chunk) : 0;
    if (this.#begunBytes > 0) at = this.#readOn(chunk, at);
    while (end - at >= frameHeaderBytes) {
      const length = payloadLength(chunk, at);
      const next = at + frameHeaderBytes + length;
      if (next > end) break;
      this.#takeFrame(chunk, at, length);
      at = next;
    }
    if (at < end) this.#keep(chunk, at, end);
  }

  /** Continues the incomplete frame, as far as the chunk reaches. @returns where the next frame begins */
  #readOn(chunk: Buffer, start: number): number {
    const end = chunk.byteLength;
    let at = start;
    if (this.#begunBytes < frameHeaderBytes) {
      at = this.#keep(chunk, at, Math.min(end, at + frameHeaderBytes - this.#begunBytes));
      if (this.#begunBytes < frameHeaderBytes) return at;
    }
    const length = payloadLength(this.#begun, 0);
    const next = at + frameHeaderBytes + length - this.#begunBytes;
    at = this.#keep(chunk, at, Math.min(end, next));
    if (at === next) {
      const frame = this.#begun;
      // Not reused: body pieces are views of it.
      this.#begun = nothing;
      this.#begunBytes = 0;
      this.#takeFrame(frame, 0, length);
    }
    return at;
  }

  #keep(chunk: Buffer, from: number, to: number): number {
    const before = this.#begun;
    const bytes = this.#begunBytes + to - from;
    if (bytes > before.byteLength) {
      this.#begun = Buffer.allocUnsafe(Math.max(bytes, 2 * before.byteLength));
      before.copy(this.#begun, 0, 0, this.#begunBytes);
    }
    chunk.copy(this.#begun, this.#begunBytes, from, to);
    this.#begunBytes = bytes;
    return to;
  }

  #takeFrame(bytes: Buffer, at: number, length: number): void {
    if (this.stopped) return;
    const frame = this.#frame;
    frame.type = bytes[at + 3] as number;
    frame.flags = bytes[at + 4] as number;
    // §4.1: the reserved bit is ignored.
    frame.streamId = bytes.readUInt32BE(at + 5) & 0x7fff_ffff;
    frame.bytes = bytes;
    frame.from = at + frameHeaderBytes;
    frame.length = length;
    this.#receiver.take(frame);
    // Otherwise its whole chunk would be kept alive until the next frame comes.
    frame.bytes = nothing;
  }

  /** Compares the part of the preface that has arrived, and returns where it ends. */
  #readPreface(chunk: Buffer): number {
    const length = Math.min(chunk.byteLength, connectionPreface.byteLength - this.#prefaceRead);
    const start = this.#prefaceRead;
    this.#prefaceRead += length;
    if (chunk.compare(connectionPreface, start, start + length, 0, length) !== 0) {
      throw new ConnectionError(ErrorCode.protocolError, "the connection preface is wrong");
    }
    return length;
  }
}

const nothing = Buffer.alloc(0);

/** @throws ConnectionError for a frame that is too large, before its payload has arrived (RFC 9113 §4.2) */
function payloadLength(bytes: Buffer, at: number): number {
  const length = ((bytes[at] as number) << 16) | ((bytes[at + 1] as number) << 8) | (bytes[at + 2] as number);
  if (length > frameBytesMax) throw new ConnectionError(ErrorCode.frameSizeError, "a frame is too large");
  return length;
}
