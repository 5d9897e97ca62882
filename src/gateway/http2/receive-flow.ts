import { FrameType, windowBytesInitial } from "./frame.ts";
import { ConnectionError, ErrorCode } from "./http2-error.ts";
import type { Http2Limits } from "./http2-limits.ts";
import type { Http2Stream } from "./http2-stream.ts";
import type { Output } from "./output.ts";

/**
 * How much the peer may send: the windows that we keep for it (RFC 9113 §5.2, §6.9).
 *
 * Invariant: what left the connection's window is held by a stream, or waits to be given back, or was. A
 * stream that ends gives back what nobody used of it; otherwise each reset would narrow the connection for good.
 */
export class ReceiveFlow {
  readonly #output: Output;
  readonly #connectionWindowBytes: number;
  readonly #streamWindowBytes: number;
  #window: number;
  #uncreditedBytes = 0;

  constructor(limits: Http2Limits, output: Output) {
    this.#output = output;
    this.#connectionWindowBytes = Math.max(limits.connectionWindowBytes, windowBytesInitial);
    this.#streamWindowBytes = limits.streamWindowBytes;
    this.#window = this.#connectionWindowBytes;
  }

  /** What a stream may send ahead at first: until our settings are acknowledged the peer may go by the initial value. */
  get streamWindowBytes(): number {
    return Math.max(this.#streamWindowBytes, windowBytesInitial);
  }

  /** Makes the connection's window as large as it is to be; only frames can (§6.9.2). */
  open(): void {
    const extra = this.#connectionWindowBytes - windowBytesInitial;
    if (extra > 0) this.#output.numbers(FrameType.windowUpdate, 0, extra);
  }

  /** Bytes of DATA came in, whatever becomes of them. @throws ConnectionError FLOW_CONTROL_ERROR */
  take(bytes: number): void {
    this.#window -= bytes;
    if (this.#window >= 0) return;
    throw new ConnectionError(ErrorCode.flowControlError, "the connection window is exceeded");
  }

  /** Bytes that {@link take} took are gone again. */
  credit(bytes: number): void {
    this.#uncreditedBytes += bytes;
    if (this.#uncreditedBytes < this.#connectionWindowBytes / 2) return;
    this.#output.numbers(FrameType.windowUpdate, 0, this.#uncreditedBytes);
    this.#window += this.#uncreditedBytes;
    this.#uncreditedBytes = 0;
  }

  /** Bytes that a stream holds were used: it may send as much again. */
  used(stream: Http2Stream, bytes: number): void {
    // What a stream held when it ended is given back already.
    const used = Math.min(bytes, stream.heldBytes);
    stream.heldBytes -= used;
    this.credit(used);
    if (stream.closed || stream.remoteEnded) return;
    stream.uncreditedBytes += used;
    if (stream.uncreditedBytes < this.#streamWindowBytes / 2) return;
    this.#output.numbers(FrameType.windowUpdate, stream.id, stream.uncreditedBytes);
    stream.receiveWindow += stream.uncreditedBytes;
    stream.uncreditedBytes = 0;
  }

  /** A stream has ended: nobody will use what it still holds. */
  release(stream: Http2Stream): void {
    const held = stream.heldBytes;
    stream.heldBytes = 0;
    if (held > 0) this.credit(held);
  }
}
