import { ErrorCode } from "../../http/index.ts";
import type { Backlog } from "../backlog.ts";
import { maxFrameBytes, FrameType, windowBytesInitial, maxWindowBytes } from "./frame-numbers.ts";
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

/** The stream members that {@link SendFlow} uses. */
export interface SendingStream {
  /** The stream's send window in bytes. The window may be negative after SETTINGS (RFC 9113 §6.9.2). */
  sendWindow: number;
  readonly queuedBytes: number;
  /** Sends a single queued frame, so that streams take turns. The windows must allow the frame. */
  sendNext(): void;
  reset(code: ErrorCode): void;
}

/** Flow control for sending (RFC 9113 §5.2, §6.9): the peer's windows, and the streams that wait to send. */
export class SendFlow {
  queuedBytes = 0;
  readonly #output: Output;
  readonly #limits: Http2Limits;
  readonly #backlog: Backlog;
  /** Streams with queued bytes, and when each last sent bytes, in `performance.now()` milliseconds. */
  readonly #waiting = new Map<SendingStream, number>();
  /** Waiting streams whose stream window may be open. Only the streams in this set are visited for sending. */
  readonly #candidates = new Set<SendingStream>();
  #window: number = windowBytesInitial;
  #final = false;

  constructor(output: Output, limits: Http2Limits, backlog: Backlog) {
    this.#output = output;
    this.#limits = limits;
    this.#backlog = backlog;
  }

  /** Takes bytes for a frame from the windows. @returns how many bytes may be sent now */
  take(stream: SendingStream, bytes: number): number {
    if (this.#output.congested) return 0;
    const allowedBytes = Math.max(0, Math.min(bytes, this.#window, stream.sendWindow, maxFrameBytes));
    this.#window -= allowedBytes;
    stream.sendWindow -= allowedBytes;
    return allowedBytes;
  }

  /** Takes all frame bytes from the windows, or none. @returns whether the frame may be sent now */
  takeAll(stream: SendingStream, bytes: number): boolean {
    if (this.#output.congested || bytes > Math.min(this.#window, stream.sendWindow, maxFrameBytes)) return false;
    this.#window -= bytes;
    stream.sendWindow -= bytes;
    return true;
  }

  /** Applies a WINDOW_UPDATE to the connection. @throws ConnectionError FLOW_CONTROL_ERROR above 2^31-1 (§6.9.1) */
  grow(increment: number): void {
    this.#window += increment;
    if (this.#window > maxWindowBytes) throw windowOverflowError();
    this.pump();
  }

  /** Applies a WINDOW_UPDATE to a stream. @returns `false` if the window exceeds 2^31-1, a stream error (§6.9.1) */
  growStream(stream: SendingStream, increment: number): boolean {
    stream.sendWindow += increment;
    if (stream.sendWindow > maxWindowBytes) return false;
    if (!this.#waiting.has(stream)) return true;
    this.#candidates.add(stream);
    this.pump();
    return true;
  }

  /**
   * Changes the windows of all open streams after SETTINGS_INITIAL_WINDOW_SIZE. A window may become negative (§6.9.2).
   *
   * @throws ConnectionError FLOW_CONTROL_ERROR above 2^31-1
   */
  changeInitialWindow(streams: Iterable<SendingStream>, difference: number): void {
    for (const stream of streams) {
      stream.sendWindow += difference;
      if (stream.sendWindow > maxWindowBytes) throw windowOverflowError();
      if (this.#waiting.has(stream)) this.#candidates.add(stream);
    }
    this.pump();
  }

  /** Called when a stream has queued bytes. @returns `false` if the bytes can never be sent */
  enqueue(stream: SendingStream, bytes: number): boolean {
    this.queuedBytes += bytes;
    if (!this.#waiting.has(stream)) {
      this.#waiting.set(stream, performance.now());
      this.#candidates.add(stream);
    }
    this.#backlog.add(bytes);
    return !this.#cannotBeSent(stream);
  }

  /** Called when the peer has closed its side, so windows do not grow. @returns streams whose bytes cannot be sent */
  finish(): readonly SendingStream[] {
    this.#final = true;
    return [...this.#waiting.keys()].filter((stream) => this.#cannotBeSent(stream));
  }

  /** Called when queued bytes of a stream were sent or dropped. `last` is true if the queue is empty. */
  release(stream: SendingStream, bytes: number, last: boolean): void {
    this.queuedBytes -= bytes;
    this.#backlog.remove(bytes);
    if (last) {
      this.#waiting.delete(stream);
      this.#candidates.delete(stream);
    } else {
      this.#waiting.set(stream, performance.now());
    }
  }

  // Serves the waiting streams round-robin, one frame each, until the window is used up or the socket is full.
  pump(): void {
    for (const stream of this.#candidates) {
      if (this.#window <= 0 || this.#output.congested) return;
      this.#candidates.delete(stream);
      if (stream.sendWindow <= 0) continue;
      // Moves the stream to the end of the set, where this loop visits the stream again.
      this.#candidates.add(stream);
      stream.sendNext();
    }
  }

  #cannotBeSent(stream: SendingStream): boolean {
    return this.#final && (stream.queuedBytes > stream.sendWindow || this.queuedBytes > this.#window);
  }

  /** Returns the waiting streams from which the peer has read no bytes for longer than the timeout. */
  stalled(nowMs: number): readonly SendingStream[] {
    const { blockedTimeoutMs } = this.#limits;
    const stalled = [...this.#waiting].filter(([, progressAtMs]) => nowMs - progressAtMs > blockedTimeoutMs);
    return stalled.map(([stream]) => stream);
  }
}

function windowOverflowError(): ConnectionError {
  return new ConnectionError(ErrorCode.flowControlError, "the flow-control window is larger than 2^31-1");
}
