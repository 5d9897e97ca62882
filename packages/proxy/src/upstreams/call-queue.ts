import type { ConnectError } from "@connectrpc/connect";
import type { ClientConnection } from "@plantstore/http-engine/client";
import { problem } from "@plantstore/gateway/internal/errors";
import type { UpstreamLimits } from "./upstream-limits.ts";

/** A call that needs a stream. */
export interface Caller {
  /** Whether it waits for as long as no server can be reached, rather than to be refused. */
  readonly waitsForReady: boolean;
  /** Called once, with a connection that has room: the stream must be opened before this returns. */
  begin(connection: ClientConnection): void;
  /** Called instead when there is none: `Unavailable`, or `ResourceExhausted` when too many calls wait, or too long. */
  refuse(error: ConnectError): void;
}

/**
 * Why a call was refused although its servers can be reached: `queue_full`, as many calls wait as may; `queue_timeout`,
 * it has waited for a stream for too long; `unsent_bytes`, the servers do not read what was sent before it.
 */
export type RefusalReason = keyof typeof refusalMessages;

const refusalMessages = {
  queue_full: "too many calls wait for the server",
  queue_timeout: "the server had no stream for the call in time",
  unsent_bytes: "too many bytes wait to be sent",
} as const;

/**
 * The calls of an upstream that wait for a connection or a stream, first in, first out. Bounded in number by
 * {@link UpstreamLimits.waitingCalls}, and in time by {@link UpstreamLimits.queueTimeoutMs} while a server is serving:
 * until then, the limit of the connection applies.
 */
export class CallQueue {
  /** How many calls were refused, by reason. */
  readonly refusals: Record<RefusalReason, number> = { queue_full: 0, queue_timeout: 0, unsent_bytes: 0 };
  readonly #limits: UpstreamLimits;
  readonly #authority: string;
  /** Since when each call waits, in milliseconds of `performance.now()`. Ascending, as a `Map` keeps its order. */
  readonly #calls = new Map<Caller, number>();
  /** Where the call that has waited longest is. A new iterator would skip all that were removed before it, each time. */
  #order: Iterator<Caller> = this.#calls.keys();
  /** Since when calls wait for a stream rather than for a server. */
  #servingSinceMs: number | undefined;

  constructor(limits: UpstreamLimits, authority: string) {
    this.#limits = limits;
    this.#authority = authority;
  }

  /** How many calls wait. */
  get size(): number {
    return this.#calls.size;
  }

  /** Adds a call, or refuses it if too many wait. */
  add(caller: Caller): void {
    const { waitingCalls } = this.#limits;
    if (this.#calls.size < waitingCalls) this.#calls.set(caller, performance.now());
    else this.refuse(caller, "queue_full", `${waitingCalls} calls wait`);
  }

  /** Forgets a call, as its caller has given up. */
  remove(caller: Caller): void {
    this.#calls.delete(caller);
  }

  /** Removes and returns the call that has waited longest. */
  shift(): Caller | undefined {
    while (this.#calls.size > 0) {
      const { done, value } = this.#order.next();
      if (done === true) this.#order = this.#calls.keys();
      else {
        this.#calls.delete(value);
        return value;
      }
    }
    return undefined;
  }

  /** Removes and returns the calls that are meant. */
  removeAll(isMeant: (caller: Caller) => boolean): readonly Caller[] {
    const removed = [...this.#calls.keys()].filter(isMeant);
    for (const caller of removed) this.#calls.delete(caller);
    return removed;
  }

  /** Refuses the calls that have waited for a stream for too long. @param isServing - whether any server has streams */
  refuseLate(isServing: boolean): void {
    const nowMs = performance.now();
    const { queueTimeoutMs } = this.#limits;
    if (!isServing || this.#calls.size === 0) this.#servingSinceMs = undefined;
    else this.#servingSinceMs ??= nowMs;
    const lateMs = nowMs - queueTimeoutMs;
    if (this.#servingSinceMs === undefined || this.#servingSinceMs > lateMs) return;
    for (const [caller, sinceMs] of this.#calls) {
      if (sinceMs > lateMs) return;
      this.#calls.delete(caller);
      this.refuse(caller, "queue_timeout", `no stream became free within ${queueTimeoutMs} ms`);
    }
  }

  /** Refuses a call. @param why - for operators; constant, so that logs can recognize repetitions */
  refuse(caller: Caller, reason: RefusalReason, why: string): void {
    this.refusals[reason]++;
    const cause = new Error(`${this.#authority}: ${why}`);
    caller.refuse(problem("ERR_UPSTREAM_BUSY", refusalMessages[reason], { cause }));
  }
}
