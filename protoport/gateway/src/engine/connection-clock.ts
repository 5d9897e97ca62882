import { runAfterTurn } from "../http/index.ts";

/** A connection whose timeouts are checked at regular intervals. A check costs less than a timer for each timeout. */
interface CheckedConnection {
  /** Checks the timeouts. @param nowMs - from `performance.now()` */
  checkTimeouts(nowMs: number): void;
}

/** Checks the timeouts of all server connections. */
interface ConnectionClock {
  /** Starts the checks, unless they have started. A mounted gateway has no connections and never calls this method. */
  start(): void;
  stop(): void;
}

/** Creates a clock that checks the timeouts of connections every `everyMs` milliseconds. */
export function createConnectionClock(connections: Iterable<CheckedConnection>, everyMs: number): ConnectionClock {
  let timer: NodeJS.Timeout | undefined;
  const checkAll = (): void => {
    const nowMs = performance.now();
    for (const connection of connections) connection.checkTimeouts(nowMs);
  };
  return {
    start: () => {
      // Pending data is read first, so that no client counts as silent after a pause of the process.
      timer ??= setInterval(() => runAfterTurn(checkAll, undefined), everyMs).unref();
    },
    stop: () => clearInterval(timer),
  };
}

/** Returns the interval between timeout checks, in milliseconds: a quarter of the shortest timeout, at most 1 s. */
export function checkIntervalMs(...timeoutsMs: readonly number[]): number {
  return Math.min(intervalMsMax, Math.ceil(Math.min(...timeoutsMs) / checksPerTimeout));
}

// At most 1 s, because the engine probes each client that has closed its side every second, also over HTTP/2.
const intervalMsMax = 1000;
const checksPerTimeout = 4;
