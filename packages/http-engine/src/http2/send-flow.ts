import { type Backlog, ErrorCode } from "@plantstore/gateway/exchange";
import { frameBytesMax, windowBytesInitial, windowBytesMax } from "./frame-numbers.ts";
import { ConnectionError } from "./http2-error.ts";
import type { Http2Limits } from "./http2-limits.ts";
import type { Output } from "./output.ts";

/** A stream, as far as it sends. */
export interface SendingStream {
  /** Bytes that may be sent, kept by {@link SendFlow}; negative after the peer narrowed it (RFC 9113 §6.9.2). */
  sendWindow: number;
  /** Bytes that wait to be sent. */
  readonly queuedBytes: number;
  /** Sends one frame of what waits; the windows must have room. Other streams get their turn in between. */
  sendNext(): void;
  /** Ends both sides at once, with RST_STREAM. */
  reset(code: ErrorCode): void;
}

/**
 * What we may send: the windows that the peer grants us (RFC 9113 §5.2, §6.9), and the streams that wait for them or
 * for the socket.
 */
export class SendFlow {
  /** Bytes that wait to be sent, on all streams. */
  queuedBytes = 0;
  readonly #output: Output;
  readonly #limits: Http2Limits;
  readonly #backlog: Backlog;
  /** Streams with bytes that wait, and when the peer last took some of each, in milliseconds of `performance.now()`. */
  readonly #waiting = new Map<SendingStream, number>();
  /** Those of them whose own window may have room. The others are not visited, however many they are. */
  readonly #candidates = new Set<SendingStream>();
  #window: number = windowBytesInitial;
  #final = false;

  constructor(output: Output, limits: Http2Limits, backlog: Backlog) {
    this.#output = output;
    this.#limits = limits;
    this.#backlog = backlog;
  }

  /** Takes room for a frame out of the windows. @returns how many of the bytes may be sent now; 0 for none */
  take(stream: SendingStream, bytes: number): number {
    if (this.#output.congested) return 0;
    const taken = Math.max(0, Math.min(bytes, this.#window, stream.sendWindow, frameBytesMax));
    this.#window -= taken;
    stream.sendWindow -= taken;
    return taken;
  }

  /** Takes room for one frame of this size out of the windows, or nothing. @returns whether it may be sent now */
  takeAll(stream: SendingStream, bytes: number): boolean {
    if (this.#output.congested || bytes > Math.min(this.#window, stream.sendWindow, frameBytesMax)) return false;
    this.#window -= bytes;
    stream.sendWindow -= bytes;
    return true;
  }

  /**
   * Widens the window of the connection after WINDOW_UPDATE.
   *
   * @throws ConnectionError FLOW_CONTROL_ERROR above 2^31-1 (§6.9.1)
   */
  grow(increment: number): void {
    this.#window += increment;
    if (this.#window > windowBytesMax) throw windowTooLarge();
    this.pump();
  }

  /** Widens the window of a stream after WINDOW_UPDATE. @returns `false` above 2^31-1, a stream error (§6.9.1) */
  growStream(stream: SendingStream, increment: number): boolean {
    stream.sendWindow += increment;
    if (stream.sendWindow > windowBytesMax) return false;
    if (!this.#waiting.has(stream)) return true;
    this.#candidates.add(stream);
    this.pump();
    return true;
  }

  /**
   * Changes the windows of all open streams after SETTINGS_INITIAL_WINDOW_SIZE; they may become negative (§6.9.2).
   *
   * @throws ConnectionError FLOW_CONTROL_ERROR above 2^31-1
   */
  changeInitialWindow(streams: Iterable<SendingStream>, difference: number): void {
    for (const stream of streams) {
      stream.sendWindow += difference;
      if (stream.sendWindow > windowBytesMax) throw windowTooLarge();
      if (this.#waiting.has(stream)) this.#candidates.add(stream);
    }
    this.pump();
  }

  /** Notes that a stream has bytes that it cannot send now. @returns `false` if it never will */
  wait(stream: SendingStream, bytes: number): boolean {
    this.queuedBytes += bytes;
    if (!this.#waiting.has(stream)) {
      this.#waiting.set(stream, performance.now());
      this.#candidates.add(stream);
    }
    this.#backlog.add(bytes);
    return !this.#isHopeless(stream);
  }

  /**
   * Notes that the peer has ended its side, so the windows will never grow.
   *
   * @returns the streams whose bytes will never fit
   */
  finish(): readonly SendingStream[] {
    this.#final = true;
    return [...this.#waiting.keys()].filter((stream) => this.#isHopeless(stream));
  }

  /** Notes that bytes of a stream no longer wait; `last` when none do. */
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

  /**
   * Serves the waiting streams in turn, a frame each, until windows or socket are full. The next call resumes there.
   */
  pump(): void {
    for (const stream of this.#candidates) {
      if (this.#window <= 0 || this.#output.congested) return;
      this.#candidates.delete(stream);
      if (stream.sendWindow <= 0) continue;
      // Added at the end, where this same loop will find it again.
      this.#candidates.add(stream);
      stream.sendNext();
    }
  }

  #isHopeless(stream: SendingStream): boolean {
    return this.#final && (stream.queuedBytes > stream.sendWindow || this.queuedBytes > this.#window);
  }

  /** Returns the streams of which the peer has taken nothing for too long. */
  stalled(nowMs: number): readonly SendingStream[] {
    const { blockedTimeoutMs } = this.#limits;
    const stalled = [...this.#waiting].filter(([, progressAtMs]) => nowMs - progressAtMs > blockedTimeoutMs);
    return stalled.map(([stream]) => stream);
  }
}

function windowTooLarge(): ConnectionError {
  return new ConnectionError(ErrorCode.flowControlError, "the flow-control window is larger than 2^31-1");
}
