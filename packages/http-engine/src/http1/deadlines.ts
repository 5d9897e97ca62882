import { type Limits, lingerMsMax, retiredIdleMs } from "@plantstore/gateway/exchange";
import type { Stage } from "./request-reader.ts";

/** What {@link Deadlines} look at. */
export interface ConnectionState {
  readonly stage: Stage;
  /** Whether some of the next head has arrived. */
  readonly headBegun: boolean;
  /** Whether the connection is to end when it is idle for a moment. */
  readonly retired: boolean;
  /** Whether the client has ended its side. */
  readonly clientEnded: boolean;
  /** Whether the client may be sent interim answers. */
  readonly canProbe: boolean;
  /** Whether the head of the answer has been sent. */
  readonly begun: boolean;
  /** Whether the socket takes no more. */
  readonly congested: boolean;
  /** For how long the client has taken none of what the socket holds. */
  readonly stalledMs: number;
}

/**
 * How long the client of a connection has kept us waiting, in calls of {@link check}. That is cheaper than a timer for
 * each wait, and late by a quarter of the shortest time-out at most.
 */
export class Deadlines {
  readonly #limits: Limits;
  readonly #timeoutCheckIntervalMs: number;
  /** Looks since the current wait began. */
  #checks = 0;

  constructor(limits: Limits, timeoutCheckIntervalMs: number) {
    this.#limits = limits;
    this.#timeoutCheckIntervalMs = timeoutCheckIntervalMs;
  }

  /** Notes that a wait begins, or that the client has given a sign of life. */
  restart(): void {
    this.#checks = 0;
  }

  /** Returns what to do because of the time that has passed. */
  check({ stage, headBegun, retired, clientEnded, canProbe, begun, congested, stalledMs }: ConnectionState): DueAction {
    const { headerTimeoutMs, requestTimeoutMs, idleTimeoutMs } = this.#limits;
    const waitedMs = this.#checks++ * this.#timeoutCheckIntervalMs;
    const lingerMs = Math.min(lingerMsMax, requestTimeoutMs);
    if (stalledMs >= idleTimeoutMs) return "destroy";
    if (stage === "body" && waitedMs >= requestTimeoutMs) return "refuse";
    if (congested) {
      // An answer that is not taken has a time-out of its own, and nothing is read meanwhile.
      this.restart();
    } else if (stage === "head") {
      const idleMs = retired ? Math.min(retiredIdleMs, idleTimeoutMs) : idleTimeoutMs;
      if (!headBegun) return waitedMs >= idleMs ? "close" : "nothing";
      return waitedMs >= Math.min(headerTimeoutMs, requestTimeoutMs) ? "refuse" : "nothing";
    } else if (stage === "closed") {
      return waitedMs >= lingerMs ? "destroy" : "nothing";
    } else if (clientEnded && waitedMs > 0) {
      // A handler may take its time, but this client may be gone. These are 25 bytes a second for as long as its call
      // lasts, so they need no bound of their own.
      if (canProbe) return "probe";
      // Only more of an answer that has begun could show that somebody reads it. A client that has left a stream, as most
      // that end their side have, must not keep its handler for longer.
      if (begun || waitedMs >= lingerMs) return "refuse";
    }
    return "nothing";
  }
}

/** What is to be done: cut the connection, refuse the request, end an idle connection, or ask for a sign of life. */
export type DueAction = "destroy" | "refuse" | "close" | "probe" | "nothing";
