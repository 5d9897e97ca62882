import type { ConnectError } from "@connectrpc/connect";
import type { ClientConnection } from "@protoport/gateway/http2-client";
import { problem } from "@protoport/gateway/errors";
import type { UpstreamLimits } from "./upstream-limits.ts";

/** A call that needs a stream. */
export interface PendingCall {
  /** Whether the call stays queued while no server can be reached. Other calls are refused. */
  readonly waitsForReady: boolean;
  /** Called once, with a connection that has a free stream. `begin` must open the stream before it returns. */
  begin(connection: ClientConnection): void;
  /**
   * Called once if the call gets no stream. The error is `Unavailable`, or `ResourceExhausted` if the queue is full or
   * the call timed out.
   */
  refuse(error: ConnectError): void;
}

/**
 * Reason for which a call was refused although servers can be reached. `queue_full` means that the queue is full.
 * `queue_timeout` means that no stream became free in time. `unsent_bytes` means that too many bytes from earlier calls
 * are queued.
 */
export type RefusalReason = keyof typeof refusalMessages;

const refusalMessages = {
  queue_full: "too many calls are queued for the server",
  queue_timeout: "the call timed out waiting for a stream to the server",
  unsent_bytes: "too many bytes are queued for the server",
} as const;

/**
 * First-in, first-out queue for calls that wait for a connection or a stream. {@link UpstreamLimits.waitingCalls}
 * limits the number of calls. {@link UpstreamLimits.queueTimeoutMs} limits the wait while a server is serving. Before a
 * server is serving, the connect timeout limits the wait.
 */
export class CallQueue {
  /** How many calls were refused, by reason. */
  readonly refusals: Record<RefusalReason, number> = { queue_full: 0, queue_timeout: 0, unsent_bytes: 0 };
  readonly #limits: UpstreamLimits;
  readonly #upstreamName: string;
  /** The queued calls with their queueing times, in `performance.now()` milliseconds and in ascending order. */
  readonly #calls = new Map<PendingCall, number>();
  /** The iterator that {@link shift} reuses, because a new iterator would skip all removed entries again. */
  #iterator: Iterator<PendingCall> = this.#calls.keys();
  /** When a server started serving, so that calls now wait only for a stream. Undefined while no server is serving. */
  #servingSinceMs: number | undefined;

  constructor(limits: UpstreamLimits, upstreamName: string) {
    this.#limits = limits;
    this.#upstreamName = upstreamName;
  }

  /** How many calls are queued. */
  get size(): number {
    return this.#calls.size;
  }

  /** Queues a call, or refuses it if the queue is full. */
  add(call: PendingCall): void {
    const { waitingCalls } = this.#limits;
    if (this.#calls.size < waitingCalls) this.#calls.set(call, performance.now());
    else this.refuse(call, "queue_full", `${waitingCalls} calls are queued`);
  }

  /** Removes a cancelled call. */
  remove(call: PendingCall): void {
    this.#calls.delete(call);
  }

  /** Removes and returns the oldest call. */
  shift(): PendingCall | undefined {
    while (this.#calls.size > 0) {
      const { done, value } = this.#iterator.next();
      if (done === true) this.#iterator = this.#calls.keys();
      else {
        this.#calls.delete(value);
        return value;
      }
    }
    return undefined;
  }

  /** Removes and returns the selected calls. */
  removeAll(isSelected: (call: PendingCall) => boolean): readonly PendingCall[] {
    const removed = [...this.#calls.keys()].filter(isSelected);
    for (const call of removed) this.#calls.delete(call);
    return removed;
  }

  /** Refuses the calls that timed out waiting for a stream. @param isServing - whether any server is serving */
  refuseTimedOut(isServing: boolean): void {
    const nowMs = performance.now();
    const { queueTimeoutMs } = this.#limits;
    if (!isServing) this.#servingSinceMs = undefined;
    else this.#servingSinceMs ??= nowMs;
    const timedOutMs = nowMs - queueTimeoutMs;
    if (this.#servingSinceMs === undefined || this.#servingSinceMs > timedOutMs) return;
    for (const [call, sinceMs] of this.#calls) {
      if (sinceMs > timedOutMs) return;
      this.#calls.delete(call);
      this.refuse(call, "queue_timeout", `no stream became free within ${queueTimeoutMs} ms`);
    }
  }

  /** Refuses a call. @param why - the reason for operators, without varying values, so that logs detect repetitions */
  refuse(call: PendingCall, reason: RefusalReason, why: string): void {
    this.refusals[reason]++;
    const cause = new Error(`${this.#upstreamName}: ${why}`);
    call.refuse(problem("ERR_UPSTREAM_BUSY", refusalMessages[reason], { cause }));
  }
}
