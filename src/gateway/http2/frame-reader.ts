import { connectionPreface, frameBytesMax, frameHeaderBytes } from "./frame.ts";
import { ConnectionError, ErrorCode } from "./http2-error.ts";

/** Takes a frame whose payload lies at `from` in `bytes`, and is not there any more once it returns. */
export type TakeFrame = (
  type: number,
  flags: number,
  streamId: number,
  bytes: Buffer,
  from: number,
  length: number,
) => void;

/**
 * Cuts what comes in from a client into frames (RFC 9113 §4.1). Frames are read where they lie; only one
 * that is split between two chunks is copied.
 */
export class FrameReader {
  readonly #take: TakeFrame;
  #rest: Buffer | undefined;
  #prefaceRead = 0;

  constructor(take: TakeFrame) {
    this.#take = take;
  }

  /** @throws ConnectionError for a wrong preface or a frame that is too large, and what `take` throws */
  read(chunk: Buffer): void {
    let bytes = chunk;
    let at = 0;
    if (this.#prefaceRead < connectionPreface.byteLength) at = this.#readPreface(chunk);
    if (this.#rest !== undefined) {
      bytes = Buffer.concat([this.#rest, chunk.subarray(at)]);
      at = 0;
      this.#rest = undefined;
    }
    const end = bytes.byteLength;
    while (end - at >= frameHeaderBytes) {
      const length = ((bytes[at] as number) << 16) | ((bytes[at + 1] as number) << 8) | (bytes[at + 2] as number);
      // §4.2: judged by the length alone, before the payload is there.
      if (length > frameBytesMax) throw new ConnectionError(ErrorCode.frameSizeError, "a frame is too large");
      const from = at + frameHeaderBytes;
      if (end - from < length) break;
      // §4.1: the reserved bit is ignored.
      const streamId = bytes.readUInt32BE(at + 5) & 0x7fff_ffff;
      this.#take(bytes[at + 3] as number, bytes[at + 4] as number, streamId, bytes, from, length);
      at = from + length;
    }
    if (at < end) this.#rest = at === 0 ? bytes : Buffer.from(bytes.subarray(at));
  }

  /** Compares the preface as far as it is there, and says where it ends. */
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
