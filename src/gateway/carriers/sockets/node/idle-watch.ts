import type { EventEmitter } from "node:events";
import { timerMsMax } from "../../index.ts";

/**
 * Calls `idle` when a connection carried nothing for `idleTimeoutMs`, which may be infinite, up to a quarter late.
 *
 * Used instead of `session.setTimeout`, which keeps each closed session of node:http2, two kilobytes, alive until its
 * time is up.
 *
 * @param connection - emits `close` when it is over
 * @param carried - returns a number that changes whenever the connection has carried something that counts
 */
export function watchIdle(
  connection: EventEmitter,
  carried: () => number,
  idleTimeoutMs: number,
  idle: () => void,
): void {
  let now = carried();
  let quietLooks = 0;
  const look = (): void => {
    const before = now;
    now = carried();
    quietLooks = now === before ? quietLooks + 1 : 0;
    if (quietLooks < looksPerTimeout) return;
    quietLooks = 0;
    idle();
  };
  const timer = setInterval(look, Math.min(idleTimeoutMs / looksPerTimeout, timerMsMax)).unref();
  connection.once("close", () => clearInterval(timer));
}

const looksPerTimeout = 4;
