import { ConnectionError, ErrorCode, protocolError } from "./http2-error.ts";
import type { Http2Limits } from "./http2-limits.ts";
import type { Http2Stream } from "./http2-stream.ts";

/** What is looked at from time to time. */
export interface Watched {
  /** Whether both sides know each other's settings. */
  readonly settled: boolean;
  /** Whether a header block has begun and is not complete. */
  readonly blockOpen: boolean;
  readonly streams: { readonly size: number; values(): Iterable<Http2Stream> };
  /** The streams whose peer takes nothing of what waits for it. */
  stalled(nowMs: number): readonly Http2Stream[];
  /** The counts of {@link Http2Limits} begin anew. */
  restartCounts(): void;
  /** Asks the peer for a sign of life. */
  ping(): void;
  fail(error: ConnectionError): void;
  destroy(): void;
}

/** The times by which things must have happened on a connection, looked at every so often rather than clocked one by one. */
export class Deadlines {
  readonly #limits: Http2Limits;
  readonly #watched: Watched;
  readonly #clock: NodeJS.Timeout;
  readonly #openedAtMs = performance.now();
  #heardAtMs = performance.now();
  #restartedAtMs = performance.now();
  #blockOpenSinceMs: number | undefined;
  #pingedAtMs: number | undefined;

  constructor(limits: Http2Limits, watched: Watched) {
    this.#limits = limits;
    this.#watched = watched;
    this.#clock = setInterval(() => this.#look(), lookEveryMs(limits)).unref();
  }

  /** When the peer was last heard of, by the clock that is `performance.now()`. */
  get heardAtMs(): number {
    return this.#heardAtMs;
  }

  /** Something came in. */
  heard(): void {
    this.#heardAtMs = performance.now();
  }

  /** The connection is over. */
  stop(): void {
    clearInterval(this.#clock);
  }

  #look(): void {
    const nowMs = performance.now();
    const { intervalMs } = this.#limits;
    if (nowMs - this.#restartedAtMs >= intervalMs) {
      this.#restartedAtMs = nowMs;
      this.#watched.restartCounts();
    }
    for (const stream of this.#watched.stalled(nowMs)) stream.reset(ErrorCode.cancel);
    this.#lookAtBodies(nowMs);
    const problem = this.#handshakeProblem(nowMs);
    if (problem === undefined) this.#lookForLife(nowMs);
    else this.#watched.fail(problem);
  }

  #lookAtBodies(nowMs: number): void {
    for (const stream of this.#watched.streams.values()) {
      if (stream.remoteEnded || nowMs - stream.openedAtMs <= this.#limits.requestTimeoutMs) continue;
      if (stream.localEnded) stream.reset(ErrorCode.noError);
      else if (stream.bodyAwaited) stream.reset(ErrorCode.cancel);
    }
  }

  #handshakeProblem(nowMs: number): ConnectionError | undefined {
    const { stallTimeoutMs } = this.#limits;
    if (!this.#watched.settled && nowMs - this.#openedAtMs > stallTimeoutMs) {
      return new ConnectionError(ErrorCode.settingsTimeout, "there are no settings");
    }
    if (!this.#watched.blockOpen) this.#blockOpenSinceMs = undefined;
    else if (nowMs - (this.#blockOpenSinceMs ??= nowMs) > stallTimeoutMs) {
      return protocolError("a header block is not continued");
    }
    return undefined;
  }

  #lookForLife(nowMs: number): void {
    const { idleTimeoutMs, stallTimeoutMs } = this.#limits;
    if (nowMs - this.#heardAtMs < idleTimeoutMs) {
      this.#pingedAtMs = undefined;
    } else if (this.#watched.streams.size === 0) {
      this.#watched.fail(new ConnectionError(ErrorCode.noError, "idle"));
    } else if (this.#pingedAtMs === undefined) {
      // A connection whose other end is gone looks just like a patient client; a PING tells them apart.
      this.#pingedAtMs = nowMs;
      this.#watched.ping();
    } else if (nowMs - this.#pingedAtMs > stallTimeoutMs) this.#watched.destroy();
  }
}

// Often enough that a deadline is missed by a quarter at most.
function lookEveryMs(limits: Http2Limits): number {
  const { intervalMs, idleTimeoutMs, stallTimeoutMs, blockedTimeoutMs, requestTimeoutMs } = limits;
  const shortestMs = Math.min(idleTimeoutMs, stallTimeoutMs, blockedTimeoutMs, requestTimeoutMs);
  return Math.max(10, Math.min(intervalMs, shortestMs / 4));
}
