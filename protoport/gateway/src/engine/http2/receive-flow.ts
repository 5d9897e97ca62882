import { FrameType, windowBytesInitial } from "./frame-numbers.ts";
import { ErrorCode } from "../../http/index.ts";
import { ConnectionError } from "./http2-error.ts";
import type { Http2Limits } from "./http2-limits.ts";
import type { Output } from "./output.ts";

/**
 * The connection's receive window (RFC 9113 §5.2, §6.9). Invariant: bytes taken from the window are held by a stream,
 * pending to be credited, or credited. A stream that closes returns its bytes, so that the window does not shrink.
 */
export class ReceiveFlow {
  readonly #output: Output;
  readonly #connectionWindowBytes: number;
  readonly streamWindowBytes: number;
  /** Number of received DATA frames. */
  frames = 0;
  #window: number;
  #uncreditedBytes = 0;

  constructor(limits: Http2Limits, output: Output) {
    this.#output = output;
    this.#connectionWindowBytes = Math.max(limits.connectionWindowBytes, windowBytesInitial);
    this.streamWindowBytes = limits.streamWindowBytes;
    this.#window = this.#connectionWindowBytes;
  }

  /** Enlarges the connection's window to its limit with a WINDOW_UPDATE (§6.9.2). */
  open(): void {
    const extra = this.#connectionWindowBytes - windowBytesInitial;
    if (extra > 0) this.#output.numbers(FrameType.windowUpdate, 0, extra);
  }

  /** Subtracts received DATA bytes from the window. @throws ConnectionError FLOW_CONTROL_ERROR */
  take(bytes: number): void {
    this.frames++;
    this.#window -= bytes;
    if (this.#window >= 0) return;
    throw new ConnectionError(ErrorCode.flowControlError, "the connection flow-control window is exceeded");
  }

  /** Returns bytes to the window that {@link take} has subtracted. */
  credit(bytes: number): void {
    this.#uncreditedBytes += bytes;
    if (this.#uncreditedBytes < this.#connectionWindowBytes / 2) return;
    this.#output.numbers(FrameType.windowUpdate, 0, this.#uncreditedBytes);
    this.#window += this.#uncreditedBytes;
    this.#uncreditedBytes = 0;
  }
}
