import { afterTurn, ErrorCode } from "@plantstore/gateway/exchange";
import type { ConnectionParts } from "./frame-rules.ts";
import { ConnectionError, protocolError } from "./http2-error.ts";
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

/** What {@link Deadlines} ask of the rules of a connection. */
export interface Handshake {
  /** Whether each side has received the other's settings, and ours are acknowledged. */
  readonly settingsExchanged: boolean;
  /** When the header block began that is not complete; `undefined` if there is none. */
  readonly blockBegunAtMs: number | undefined;
}

/** The deadlines of either side. They are checked at intervals, which is cheaper than a timer for each. */
export class Deadlines<Stream> {
  protected readonly parts: ConnectionParts<Stream>;
  readonly #handshake: Handshake;
  readonly #effects: DeadlineEffects;
  readonly #clock: NodeJS.Timeout;
  readonly #openedAtMs = performance.now();
  /** When the peer last sent anything, by `performance.now()`, in whole milliseconds. */
  lastReceivedAtMs: number = Math.trunc(performance.now());
  /** When a stream was last seen open, and the highest stream number at that time. */
  #busyAtMs = performance.now();
  #lastStreamId = 0;
  #restartedAtMs = performance.now();
  #pingedAtMs: number | undefined;
  #isStopped = false;

  constructor(parts: ConnectionParts<Stream>, handshake: Handshake, effects: DeadlineEffects) {
    this.parts = parts;
    this.#handshake = handshake;
    this.#effects = effects;
    // After what has arrived is read: a process that was held up would take it for silence.
    const look = (): void => afterTurn(() => this.#look(), undefined);
    this.#clock = setInterval(look, timeoutCheckIntervalMs(parts.limits)).unref();
  }

  /** Stops checking; the connection is over. */
  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#clock);
  }

  /** Looks at the deadlines that only one side has. */
  protected checkSideTimeouts(_nowMs: number): void {}

  /** For how many milliseconds the peer may be silent before it is sent a PING. */
  protected get silenceMs(): number {
    return this.parts.limits.idleTimeoutMs;
  }

  /** Whether a stream is open that keeps the connection. */
  protected get isBusy(): boolean {
    return this.parts.streams.open.size > 0;
  }

  #look(): void {
    if (this.#isStopped) return;
    const nowMs = performance.now();
    const { limits, guard, sendFlow } = this.parts;
    if (nowMs - this.#restartedAtMs >= limits.intervalMs) {
      this.#restartedAtMs = nowMs;
      guard.restart();
    }
    for (const stream of sendFlow.stalled(nowMs)) stream.reset(ErrorCode.cancel);
    this.checkSideTimeouts(nowMs);
    const problem = this.#handshakeProblem(nowMs);
    if (problem === undefined) this.#lookForLife(nowMs);
    else this.#effects.fail(problem);
  }

  #handshakeProblem(nowMs: number): ConnectionError | undefined {
    const { stallTimeoutMs } = this.parts.limits;
    if (!this.#handshake.settingsExchanged && nowMs - this.#openedAtMs > stallTimeoutMs) {
      return new ConnectionError(ErrorCode.settingsTimeout, "timed out waiting for SETTINGS or its acknowledgement");
    }
    const { blockBegunAtMs = nowMs } = this.#handshake;
    return nowMs - blockBegunAtMs > stallTimeoutMs ? protocolError("timed out waiting for CONTINUATION") : undefined;
  }

  #lookForLife(nowMs: number): void {
    const { backlog, streams, limits } = this.parts;
    const { idleTimeoutMs, stallTimeoutMs, blockedTimeoutMs } = limits;
    if (backlog.stalledMs(nowMs) > blockedTimeoutMs) return this.#effects.destroy();
    if (this.isBusy || streams.lastStreamId !== this.#lastStreamId) this.#busyAtMs = nowMs;
    this.#lastStreamId = streams.lastStreamId;
    // Idle means without streams, not without frames: a PING now and then does not keep a connection open.
    if (nowMs - this.#busyAtMs >= idleTimeoutMs) this.#effects.drain();
    // A peer that reads what was waiting for it is alive, too.
    else if (nowMs - Math.max(this.lastReceivedAtMs, backlog.movedAtMs) < this.silenceMs) this.#pingedAtMs = undefined;
    else if (this.#pingedAtMs === undefined) {
      // A dead connection looks like a quiet client; a PING tells them apart.
      this.#pingedAtMs = nowMs;
      this.#effects.ping();
    } else if (nowMs - this.#pingedAtMs > stallTimeoutMs) this.#effects.destroy();
  }
}

function timeoutCheckIntervalMs(limits: Http2Limits): number {
  const { intervalMs, idleTimeoutMs, stallTimeoutMs, blockedTimeoutMs, requestTimeoutMs } = limits;
  const shortestMs = Math.min(idleTimeoutMs, stallTimeoutMs, blockedTimeoutMs, requestTimeoutMs);
  return Math.min(intervalMs, checkIntervalFor(shortestMs));
}

/** Returns how often to look at a deadline: often enough that it is not missed by more than a quarter. */
export function checkIntervalFor(deadlineMs: number): number {
  return Math.max(10, deadlineMs / 4);
}
