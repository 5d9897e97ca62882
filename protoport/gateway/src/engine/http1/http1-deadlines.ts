import { clientGoneProblem, type HttpProblem, type Limits, maxLingerMs } from "../../http/index.ts";
import { requestTimeoutProblem } from "./problems.ts";
import type { Stage } from "./request-reader.ts";

/** The connection state for {@link Http1Deadlines}. */
export interface ConnectionState {
  readonly stage: Stage;
  /** Whether part of the next request head has arrived. */
  readonly headStarted: boolean;
  /** Whether the connection is closed after a short idle time. */
  readonly retired: boolean;
  readonly clientClosed: boolean;
  /** Whether the client accepts interim responses. */
  readonly canProbe: boolean;
  readonly responseStarted: boolean;
  readonly congested: boolean;
  /** Milliseconds since the client last read buffered bytes, or 0 if the socket buffers no bytes. */
  readonly stalledMs: number;
}

/**
 * Measures how long a connection has waited for its client by counting calls to {@link check}. Counting is cheaper than
 * a timer for each wait. Actions are late by at most a quarter of the shortest timeout.
 */
export class Http1Deadlines {
  readonly #limits: Limits;
  readonly #timeoutCheckIntervalMs: number;
  /** Number of checks since the current wait started. */
  #checks = 0;

  constructor(limits: Limits, timeoutCheckIntervalMs: number) {
    this.#limits = limits;
    this.#timeoutCheckIntervalMs = timeoutCheckIntervalMs;
  }

  /** Starts to measure a new wait. Also called after client activity. */
  restart(): void {
    this.#checks = 0;
  }

  /** Returns the action that is due. Called at regular intervals. */
  check({
    stage,
    headStarted,
    retired,
    clientClosed,
    canProbe,
    responseStarted,
    congested,
    stalledMs,
  }: ConnectionState): DueAction {
    const { headerTimeoutMs, requestTimeoutMs, idleTimeoutMs } = this.#limits;
    const waitedMs = this.#checks++ * this.#timeoutCheckIntervalMs;
    const lingerMs = Math.min(maxLingerMs, requestTimeoutMs);
    if (stalledMs >= idleTimeoutMs) return "destroy";
    if (stage === "body" && waitedMs >= requestTimeoutMs) return requestTimeoutProblem("requestTimeoutMs");
    if (congested) {
      // While the client does not read the response, `stalledMs` measures the wait instead of `waitedMs`.
      this.restart();
    } else if (stage === "head") {
      const idleMs = retired ? Math.min(retiredIdleMs, idleTimeoutMs) : idleTimeoutMs;
      if (!headStarted) return waitedMs >= idleMs ? "close" : "nothing";
      const limit = headerTimeoutMs <= requestTimeoutMs ? "headerTimeoutMs" : "requestTimeoutMs";
      return waitedMs >= this.#limits[limit] ? requestTimeoutProblem(limit) : "nothing";
    } else if (stage === "closed") {
      return waitedMs >= lingerMs ? "destroy" : "nothing";
    } else if (clientClosed && waitedMs > 0) {
      // The client may have disconnected while a handler is running. Probes send only 25 bytes per second.
      if (canProbe) return "probe";
      // Once the response has started, the client cannot be probed. Most clients that close their side have cancelled a
      // streaming call, and the call's handler must not keep running.
      if (responseStarted || waitedMs >= lingerMs) return clientGoneProblem();
    }
    return "nothing";
  }
}

/** Destroys the connection, closes an idle connection, probes whether the client is alive, or refuses the request. */
type DueAction = "destroy" | "close" | "probe" | "nothing" | HttpProblem;

/** Milliseconds for which a connection above the maximum age must be idle before it is closed. */
// A busy client sends its next call within a second, and the response to that call closes the connection without loss.
export const retiredIdleMs: number = 1000;
