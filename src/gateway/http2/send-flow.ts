import { frameBytesMax, windowBytesInitial, windowBytesMax } from "./frame.ts";
import { ConnectionError, ErrorCode } from "./http2-error.ts";
import type { Http2Limits } from "./http2-limits.ts";
import type { Http2Stream } from "./http2-stream.ts";
import type { Output } from "./output.ts";

/** What all connections of a server hold for peers that do not take it now. */
export class QueueBudget {
  readonly #limitBytes: number;
  #bytes = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /** How much is held. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether nothing more may be held. */
  get full(): boolean {
    return this.#bytes >= this.#limitBytes;
  }

  /** Whether it is time to be strict with those that hold it. */
  get scarce(): boolean {
    return this.#bytes >= this.#limitBytes / 2;
  }

  change(bytes: number): void {
    this.#bytes += bytes;
  }
}

/**
 * How much we may send and who waits to: the windows that the peer keeps for us (RFC 9113 §5.2, §6.9), and what
 * the socket takes.
 */
export class SendFlow {
  readonly #output: Output;
  readonly #limits: Http2Limits;
  readonly #budget: QueueBudget;
  readonly #waiting = new Set<Http2Stream>();
  #window: number = windowBytesInitial;
  #queuedBytes = 0;
  #final = false;

  constructor(output: Output, limits: Http2Limits, budget: QueueBudget) {
    this.#output = output;
    this.#limits = limits;
    this.#budget = budget;
  }

  /** Whether so much waits already that no more requests are taken. */
  get full(): boolean {
    return this.#queuedBytes >= this.#limits.queuedBytes;
  }

  /** How many bytes a stream may send in a frame now. */
  allowance(stream: Http2Stream): number {
    return this.#output.congested ? 0 : Math.min(this.#window, stream.sendWindow, frameBytesMax);
  }

  /** So many bytes of DATA go out. */
  spend(stream: Http2Stream, bytes: number): void {
    this.#window -= bytes;
    stream.sendWindow -= bytes;
  }

  /** WINDOW_UPDATE for the connection. @throws ConnectionError FLOW_CONTROL_ERROR above 2^31-1 (§6.9.1) */
  grow(increment: number): void {
    this.#window += increment;
    if (this.#window > windowBytesMax) throw windowTooLarge();
    this.pump();
  }

  /** WINDOW_UPDATE for a stream. @returns `false` above 2^31-1, an error of the stream (§6.9.1) */
  growStream(stream: Http2Stream, increment: number): boolean {
    stream.sendWindow += increment;
    if (stream.sendWindow > windowBytesMax) return false;
    if (this.#waiting.has(stream)) this.pump();
    return true;
  }

  /**
   * SETTINGS_INITIAL_WINDOW_SIZE has changed: so do the windows of the streams that are open, which may become
   * negative by it (§6.9.2).
   *
   * @throws ConnectionError FLOW_CONTROL_ERROR above 2^31-1
   */
  shift(streams: Iterable<Http2Stream>, difference: number): void {
    for (const stream of streams) {
      stream.sendWindow += difference;
      if (stream.sendWindow > windowBytesMax) throw windowTooLarge();
    }
    this.pump();
  }

  /** A stream has so many bytes to send that it cannot send now. @returns `false` if there is no room to hold them, or no hope */
  wait(stream: Http2Stream, bytes: number): boolean {
    this.#queuedBytes += bytes;
    this.#budget.change(bytes);
    if (!this.#waiting.has(stream)) {
      stream.waitsSinceMs = stream.progressAtMs = performance.now();
      this.#waiting.add(stream);
    }
    return !this.#budget.full && !this.#isHopeless(stream);
  }

  /** The peer says no more: the windows are as wide as they will ever be. @returns what will never fit */
  finish(): readonly Http2Stream[] {
    this.#final = true;
    return [...this.#waiting].filter((stream) => this.#isHopeless(stream));
  }

  /** So many bytes of a stream wait no more; `last` when none do. */
  release(stream: Http2Stream, bytes: number, last: boolean): void {
    this.#queuedBytes -= bytes;
    this.#budget.change(-bytes);
    stream.progressAtMs = performance.now();
    if (last) this.#waiting.delete(stream);
  }

  /** Goes round the streams that wait, a frame each, until the windows or the socket take no more. */
  pump(): void {
    let progress = true;
    while (progress) {
      progress = false;
      for (const stream of this.#waiting) {
        if (this.#window <= 0 || this.#output.congested) return;
        if (stream.sendWindow <= 0) continue;
        progress = true;
        stream.sendNext();
      }
    }
  }

  #isHopeless(stream: Http2Stream): boolean {
    return this.#final && (stream.queuedBytes > stream.sendWindow || this.#queuedBytes > this.#window);
  }

  /** The streams whose peer has taken nothing for too long, or too little where memory is scarce. */
  stalled(nowMs: number): readonly Http2Stream[] {
    const { blockedTimeoutMs, stallTimeoutMs } = this.#limits;
    const scarce = this.#budget.scarce;
    return [...this.#waiting].filter(
      ({ progressAtMs, waitsSinceMs }) =>
        nowMs - progressAtMs > blockedTimeoutMs || (scarce && nowMs - waitsSinceMs > stallTimeoutMs),
    );
  }
}

function windowTooLarge(): ConnectionError {
  return new ConnectionError(ErrorCode.flowControlError, "a window is too large");
}
