import { FrameFlag, maxFrameBytes, frameHeaderBytes, FrameType } from "./frame-numbers.ts";
import { ErrorCode } from "../../http/index.ts";
import { ConnectionError } from "./http2-error.ts";

/** A frame, read in place. The payload has `length` bytes and begins at `from` in `bytes`. */
export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly bytes: Buffer;
  readonly from: number;
  readonly length: number;
  /** Whether the frame is the second or a later part of a DATA frame. */
  readonly continued: boolean;
}

/** Receives a connection's frames. */
export interface FrameReceiver {
  /** Called with each frame. The frame is valid only during the call, because the reader reuses its object. */
  onFrame(frame: Frame): void;
}

/**
 * Splits a peer's bytes into frames (RFC 9113 §4.1), in place. A frame that is split between chunks is copied once,
 * into a buffer that grows with the received bytes. Large parts of a DATA frame are passed on in place, as separate
 * frames, because frame boundaries have no meaning within a body (§6.1).
 */
export class FrameReader {
  /** Whether reading has stopped after a connection error. The rest of the current chunk is ignored, too. */
  stopped = false;
  readonly #receiver: FrameReceiver;
  readonly #preface: Buffer;
  /** Buffer for an incomplete frame, of which `#partialBytes` bytes were received but not passed on. */
  #partial: Buffer = noBytes;
  #partialBytes = 0;
  readonly #frame = { type: 0, flags: 0, streamId: 0, bytes: this.#partial, from: 0, length: 0, continued: false };
  #prefaceRead = 0;

  /** @param preface - the bytes before a client's first frame (RFC 9113 §3.4), or empty if the peer is a server */
  constructor(receiver: FrameReceiver, preface: Buffer) {
    this.#receiver = receiver;
    this.#preface = preface;
  }

  /**
   * Reads the next chunk.
   *
   * @throws ConnectionError for an invalid preface or a frame that is too large, and any error from the receiver
   */
  read(chunk: Buffer): void {
    const end = chunk.byteLength;
    let at = this.#prefaceRead < this.#preface.byteLength ? this.#readPreface(chunk) : 0;
    if (this.#partialBytes > 0) at = this.#continueFrame(chunk, at);
    while (end - at >= frameHeaderBytes) {
      const length = payloadLength(chunk, at);
      const from = at + frameHeaderBytes;
      if (from + length > end) break;
      this.#deliverFrame(chunk, at, chunk, from, length);
      at = from + length;
    }
    if (at < end) this.#continueFrame(chunk, at);
  }

  /** Adds bytes from the chunk to the incomplete frame. @returns where the next frame starts */
  #continueFrame(chunk: Buffer, start: number): number {
    const end = chunk.byteLength;
    const headerEnd = start + Math.max(0, frameHeaderBytes - this.#partialBytes);
    const from = this.#keep(chunk, start, Math.min(end, headerEnd));
    if (this.#partialBytes < frameHeaderBytes) return end;
    const length = payloadLength(this.#partial, 0);
    const isInPlace = this.#partialBytes === frameHeaderBytes;
    const next = from + frameHeaderBytes + length - this.#partialBytes;
    if (next > end) {
      if (isInPlace && end - from >= minPartBytes && canDeliverInParts(this.#partial))
        this.#deliverPart(chunk, from, length);
      else this.#keep(chunk, from, end);
      return end;
    }
    if (!isInPlace) this.#keep(chunk, from, next);
    const partial = this.#partial;
    // The buffer is not reused, because receivers may keep pieces of a body, which are views into the buffer.
    this.#partial = noBytes;
    this.#partialBytes = 0;
    if (isInPlace) this.#deliverFrame(partial, 0, chunk, from, length);
    else this.#deliverFrame(partial, 0, partial, frameHeaderBytes, length);
    this.#frame.continued = false;
    return next;
  }

  /** Passes on the part of the DATA frame that is in the chunk. The rest becomes the incomplete frame. */
  #deliverPart(chunk: Buffer, from: number, length: number): void {
    const header = this.#partial;
    const flags = header.readUInt8(flagsAt);
    const partBytes = chunk.byteLength - from;
    header[flagsAt] = flags & ~FrameFlag.endStream;
    this.#deliverFrame(header, 0, chunk, from, partBytes);
    this.#frame.continued = true;
    header[flagsAt] = flags;
    header.writeUIntBE(length - partBytes, 0, 3);
  }

  #keep(chunk: Buffer, from: number, to: number): number {
    const previousBytes = this.#partial;
    const bytes = this.#partialBytes + to - from;
    if (bytes > previousBytes.byteLength) {
      // A slice from node's pool would keep the pool alive until the rest of the frame arrives.
      this.#partial = Buffer.allocUnsafeSlow(Math.max(bytes, 2 * previousBytes.byteLength));
      previousBytes.copy(this.#partial, 0, 0, this.#partialBytes);
    }
    chunk.copy(this.#partial, this.#partialBytes, from, to);
    this.#partialBytes = bytes;
    return to;
  }

  /** Passes on a frame. Header and payload may be in different buffers. */
  #deliverFrame(header: Buffer, at: number, bytes: Buffer, from: number, length: number): void {
    if (this.stopped) return;
    const frame = this.#frame;
    frame.type = header[at + typeAt] ?? 0;
    frame.flags = header[at + flagsAt] ?? 0;
    // §4.1: the reserved bit is ignored.
    frame.streamId = (((header[at + 5] ?? 0) & 0x7f) << 24) | readUint24(header, at + 6);
    frame.bytes = bytes;
    frame.from = from;
    frame.length = length;
    this.#receiver.onFrame(frame);
    // Releases the chunk, which the frame would otherwise keep in memory until another frame arrives.
    frame.bytes = noBytes;
  }

  /** Compares the received part of the preface, and returns the position after that part. */
  #readPreface(chunk: Buffer): number {
    const length = Math.min(chunk.byteLength, this.#preface.byteLength - this.#prefaceRead);
    const start = this.#prefaceRead;
    this.#prefaceRead += length;
    if (chunk.compare(this.#preface, start, start + length, 0, length) !== 0) {
      throw new ConnectionError(ErrorCode.protocolError, "the connection preface is not valid");
    }
    return length;
  }
}

const noBytes = Buffer.alloc(0);

// Offsets of type and flags in a frame header (RFC 9113 §4.1).
const typeAt = 3;
const flagsAt = 4;
// Minimum number of received bytes to pass on from an incomplete DATA frame. Fewer bytes are cheaper to copy.
const minPartBytes = 4096;

// Only DATA without padding can be split, because padding follows the data.
function canDeliverInParts(header: Buffer): boolean {
  return header[typeAt] === FrameType.data && (header.readUInt8(flagsAt) & FrameFlag.padded) === 0;
}

/** @throws ConnectionError if the frame will be too large (RFC 9113 §4.2) */
function payloadLength(bytes: Buffer, at: number): number {
  const length = readUint24(bytes, at);
  if (length > maxFrameBytes)
    throw new ConnectionError(ErrorCode.frameSizeError, "a frame is larger than SETTINGS_MAX_FRAME_SIZE");
  return length;
}

// The caller checks the bounds. `readUIntBE` would validate its arguments, which costs more than reading.
function readUint24(bytes: Buffer, at: number): number {
  return ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
}
