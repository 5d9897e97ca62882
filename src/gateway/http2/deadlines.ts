import type { ConnectionParts, FrameRules } from "./frame-rules.ts";
import { ConnectionError, ErrorCode, protocolError } from "./http2-error.ts";
import type { Http2Limits } from "./http2-limits.ts";

/** The effects of {@link Deadlines} on a connection. */
export interface DeadlineEffects {
  /** Sends a PING, to see whether the peer still answers. */
  ping(): void;
  fail(error: ConnectionError): void;
  /** Ends the connection without losing a request. */
  drain(): void;
  destroy(): void;
}

/** The deadlines of a connection. They are checked at intervals, which is cheaper than a timer for each. */
export class Deadlines {
  readonly #parts: ConnectionParts;
  readonly #rules: FrameRules;
  readonly #effects: DeadlineEffects;
  readonly #clock: NodeJS.Timeout;
  /** Runs while a stream is answered whose peer is still sending. */
  #lingerClock: NodeJS.Timeout | undefined;
  readonly #openedAtMs = performance.now();
  /** When the peer last sent anything, by `performance.now()`, in whole milliseconds. */
  heardAtMs: number = Math.trunc(performance.now());
  /** When a stream was last seen open, and the highest stream number at that time. */
  #busyAtMs = performance.now();
  #lastStreamId = 0;
  #restartedAtMs = performance.now();
  #pingedAtMs: number | undefined;

  constructor(parts: ConnectionParts, rules: FrameRules, effects: DeadlineEffects) {
    this.#parts = parts;
    this.#rules = rules;
    this.#effects = effects;
    this.#clock = setInterval(() => this.#look(), lookEveryMs(parts.limits)).unref();
  }

  /** Notes that a stream is answered whose peer may go on sending for a while. */
  lingers(): void {
    const { lingerMs } = this.#parts.limits;
    // So short a deadline has a clock of its own: with the other one, idle connections would look for it all the time.
    this.#lingerClock ??= setInterval(() => this.#lookAtLingering(), quarterOf(lingerMs)).unref();
  }

  /** Stops checking; the connection is over. */
  stop(): void {
    clearInterval(this.#clock);
    clearInterval(this.#lingerClock);
  }

  #look(): void {
    const nowMs = performance.now();
    const { limits, guard, sendFlow } = this.#parts;
    if (nowMs - this.#restartedAtMs >= limits.intervalMs) {
      this.#restartedAtMs = nowMs;
      guard.restart();
    }
    for (const stream of sendFlow.stalled(nowMs)) stream.reset(ErrorCode.cancel);
    this.#lookAtBodies(nowMs);
    const problem = this.#handshakeProblem(nowMs);
    if (problem === undefined) this.#lookForLife(nowMs);
    else this.#effects.fail(problem);
  }

  #lookAtBodies(nowMs: number): void {
    const { streams, limits } = this.#parts;
    for (const stream of streams.open.values()) {
      if (stream.receiver?.body?.isAwaited !== true) continue;
      if (nowMs - stream.openedAtMs > limits.requestTimeoutMs) stream.reset(ErrorCode.cancel);
    }
  }

  #lookAtLingering(): void {
    const nowMs = performance.now();
    const { streams, limits } = this.#parts;
    let lingering = 0;
    for (const stream of streams.open.values()) {
      if (stream.answeredAtMs === 0) continue;
      // RFC 9113 §8.1: after a complete answer the server may ask the client to stop sending.
      if (nowMs - stream.answeredAtMs >= limits.lingerMs) stream.reset(ErrorCode.noError);
      else lingering += 1;
    }
    if (lingering > 0) return;
    clearInterval(this.#lingerClock);
    this.#lingerClock = undefined;
  }

  #handshakeProblem(nowMs: number): ConnectionError | undefined {
    const { stallTimeoutMs } = this.#parts.limits;
    if (!this.#rules.settingsExchanged && nowMs - this.#openedAtMs > stallTimeoutMs) {
      return new ConnectionError(ErrorCode.settingsTimeout, "SETTINGS were not sent or acknowledged in time");
    }
    const { blockBegunAtMs = nowMs } = this.#rules;
    return nowMs - blockBegunAtMs > stallTimeoutMs ? protocolError("a header block is not continued") : undefined;
  }

  #lookForLife(nowMs: number): void {
    const { backlog, streams, limits } = this.#parts;
    const { idleTimeoutMs, stallTimeoutMs, blockedTimeoutMs } = limits;
    if (backlog.stalledMs(nowMs) > blockedTimeoutMs) return this.#effects.destroy();
    if (streams.open.size > 0 || streams.lastStreamId !== this.#lastStreamId) this.#busyAtMs = nowMs;
    this.#lastStreamId = streams.lastStreamId;
    // Idle means without streams, not without frames: a PING now and then does not keep a connection open.
    if (nowMs - this.#busyAtMs >= idleTimeoutMs) this.#effects.drain();
    // A peer that reads what was waiting for it is alive, too.
    else if (nowMs - Math.max(this.heardAtMs, backlog.movedAtMs) < idleTimeoutMs) this.#pingedAtMs = undefined;
    else if (this.#pingedAtMs === undefined) {
      // A dead connection looks like a quiet client; a PING tells them apart.
      this.#pingedAtMs = nowMs;
      this.#effects.ping();
    } else if (nowMs - this.#pingedAtMs > stallTimeoutMs) this.#effects.destroy();
  }
}

function lookEveryMs(limits: Http2Limits): number {
  const { intervalMs, idleTimeoutMs, stallTimeoutMs, blockedTimeoutMs, requestTimeoutMs } = limits;
  const shortestMs = Math.min(idleTimeoutMs, stallTimeoutMs, blockedTimeoutMs, requestTimeoutMs);
  return Math.min(intervalMs, quarterOf(shortestMs));
}

// Often enough that no deadline is missed by more than a quarter.
function quarterOf(deadlineMs: number): number {
  return Math.max(10, deadlineMs / 4);
}
