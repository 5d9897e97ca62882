import { runAfterTurn, ErrorCode } from "../../http/index.ts";
import type { IdentifiedStream } from "./stream-table.ts";
import type { ConnectionParts } from "./frame-handler.ts";
import { ConnectionError, protocolError } from "./http2-error.ts";
import type { Http2Limits } from "./http2-limits.ts";

/** Actions on the connection that {@link Http2Deadlines} can trigger. */
export interface DeadlineCallbacks {
  /** Sends a PING to check whether the peer still responds. */
  ping(): void;
  fail(error: ConnectionError): void;
  /** Closes the connection gracefully after all open streams have closed. */
  drain(): void;
  destroy(): void;
}

/** The state of the handshake and of field blocks, for {@link Http2Deadlines}. */
export interface Handshake {
  /** Whether the peer has sent SETTINGS and acknowledged ours. */
  readonly settingsExchanged: boolean;
  /** Time when the incomplete field block started, or `undefined` if no field block is incomplete. */
  readonly blockStartedAtMs: number | undefined;
}

/** The deadlines that apply to clients and servers. Checks at intervals are cheaper than a timer for each deadline. */
export class Http2Deadlines<Stream extends IdentifiedStream> {
  protected readonly parts: ConnectionParts<Stream>;
  readonly #handshake: Handshake;
  readonly #callbacks: DeadlineCallbacks;
  readonly #clock: NodeJS.Timeout;
  readonly #openedAtMs = performance.now();
  /** Time when the peer last sent bytes, in integer `performance.now()` milliseconds. */
  lastReceivedAtMs: number = Math.trunc(performance.now());
  /** Time when a check last found an open or new stream, and the highest stream identifier at that check. */
  #busyAtMs = this.#openedAtMs;
  #lastStreamId = 0;
  #restartedAtMs = performance.now();
  #pingedAtMs: number | undefined;
  /** At the last check: number of bytes in the socket's buffer, and total number of bytes that had left the buffer. */
  #bufferedBytes = 0;
  #sentBytes = 0;
  /** Time of the last check at which the peer had read bytes that were buffered at the previous check. */
  #readAtMs = 0;
  #isStopped = false;

  constructor(parts: ConnectionParts<Stream>, handshake: Handshake, callbacks: DeadlineCallbacks) {
    this.parts = parts;
    this.#handshake = handshake;
    this.#callbacks = callbacks;
    // Reads all received bytes before each check, so that no peer seems silent after the process was blocked.
    const check = (): void => runAfterTurn(() => this.#check(), undefined);
    this.#clock = setInterval(check, timeoutCheckIntervalMs(parts.limits)).unref();
  }

  /** Stops checking, because the connection is closed. */
  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#clock);
  }

  /** Checks the deadlines that only a client or only a server has. */
  protected checkSideTimeouts(_nowMs: number): void {}

  /** Milliseconds without a frame after which the peer gets a PING. */
  protected get silenceMs(): number {
    return this.parts.limits.idleTimeoutMs;
  }

  /** Sends a PING to distinguish a dead connection from an idle peer. */
  protected ping(): void {
    this.#callbacks.ping();
  }

  /** Whether an open stream keeps the connection open. */
  protected get isBusy(): boolean {
    return this.parts.streams.open.size > 0;
  }

  #check(): void {
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
    if (problem === undefined) this.#checkLiveness(nowMs);
    else this.#callbacks.fail(problem);
  }

  #handshakeProblem(nowMs: number): ConnectionError | undefined {
    const { stallTimeoutMs } = this.parts.limits;
    if (!this.#handshake.settingsExchanged && nowMs - this.#openedAtMs > stallTimeoutMs) {
      return new ConnectionError(ErrorCode.settingsTimeout, "timed out waiting for SETTINGS or its acknowledgement");
    }
    const { blockStartedAtMs = nowMs } = this.#handshake;
    return nowMs - blockStartedAtMs > stallTimeoutMs ? protocolError("timed out waiting for CONTINUATION") : undefined;
  }

  #checkLiveness(nowMs: number): void {
    const { backlog, streams, limits } = this.parts;
    const { idleTimeoutMs, stallTimeoutMs, blockedTimeoutMs } = limits;
    this.#checkProgress(nowMs);
    if (backlog.stalledMs(nowMs) > blockedTimeoutMs) return this.#callbacks.destroy();
    if (this.isBusy || streams.lastStreamId !== this.#lastStreamId) this.#busyAtMs = nowMs;
    this.#lastStreamId = streams.lastStreamId;
    // A connection without streams is idle even if the peer sends frames such as PING.
    if (nowMs - this.#busyAtMs >= idleTimeoutMs) return this.#callbacks.drain();
    // A peer that reads buffered bytes is alive, but must still acknowledge a PING. The truncated receive time may be
    // earlier than the opening time, and alone would cause a PING just before the drain.
    const aliveAtMs = Math.max(this.#openedAtMs, this.lastReceivedAtMs, this.#readAtMs);
    const pingedAtMs = this.#pingedAtMs;
    if (pingedAtMs !== undefined && this.lastReceivedAtMs < pingedAtMs) {
      if (nowMs - Math.max(pingedAtMs, aliveAtMs) > stallTimeoutMs) this.#callbacks.destroy();
      return;
    }
    const isSilent = nowMs - aliveAtMs >= this.silenceMs;
    // Truncated like the receive time, so that the two times can be compared.
    this.#pingedAtMs = isSilent ? Math.trunc(nowMs) : undefined;
    if (isSilent) this.ping();
  }

  // Records whether the peer has read bytes that were buffered at the last check. Bytes buffered after that check prove
  // nothing, because TLS sockets buffer every write for a moment, even if the peer is frozen.
  #checkProgress(nowMs: number): void {
    const { backlog } = this.parts;
    const bufferedBytes = backlog.count();
    if (this.#bufferedBytes > 0 && backlog.sentBytes > this.#sentBytes) this.#readAtMs = nowMs;
    this.#bufferedBytes = bufferedBytes;
    this.#sentBytes = backlog.sentBytes;
  }
}

function timeoutCheckIntervalMs(limits: Http2Limits): number {
  const { intervalMs, idleTimeoutMs, stallTimeoutMs, blockedTimeoutMs, requestTimeoutMs } = limits;
  const shortestMs = Math.min(idleTimeoutMs, stallTimeoutMs, blockedTimeoutMs, requestTimeoutMs);
  return Math.min(intervalMs, checkIntervalFor(shortestMs));
}

/** Returns the check interval for a deadline. With this interval, a deadline is exceeded by at most a quarter. */
export function checkIntervalFor(deadlineMs: number): number {
  return Math.max(10, deadlineMs / 4);
}
