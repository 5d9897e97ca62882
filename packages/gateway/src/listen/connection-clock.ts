import { afterTurn } from "../exchange/index.ts";

/** A connection whose timeouts are checked at regular intervals, which is cheaper than a timer for each wait. */
export interface CheckedConnection {
  /** Checks the timeouts. @param nowMs - by `performance.now()` */
  checkTimeouts(nowMs: number): void;
}

/** Checks the timeouts of all connections of a server. */
export interface ConnectionClock {
  /** Starts to check, if it has not been started: a gateway that is mounted has no connection of its own. */
  start(): void;
  stop(): void;
}

/** Creates what checks the timeouts of the connections in a set, every `everyMs` milliseconds. */
export function createConnectionClock(connections: ReadonlySet<CheckedConnection>, everyMs: number): ConnectionClock {
  let timer: NodeJS.Timeout | undefined;
  const checkAll = (): void => {
    const nowMs = performance.now();
    for (const connection of connections) connection.checkTimeouts(nowMs);
  };
  return {
    start: () => {
      // After what has arrived is read: a process that was held up would take it for silence.
      timer ??= setInterval(() => afterTurn(checkAll, undefined), everyMs).unref();
    },
    stop: () => clearInterval(timer),
  };
}

/** Returns how often timeouts are checked: so often that none is late by more than a quarter. In milliseconds. */
export function checkIntervalMs(...timeoutsMs: readonly number[]): number {
  return Math.min(intervalMsMax, Math.ceil(Math.min(...timeoutsMs) / checksPerTimeout));
}

// A client that has closed its side is asked each second whether it is still there, as on our HTTP/2.
const intervalMsMax = 1000;
const checksPerTimeout = 4;
