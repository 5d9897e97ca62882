import type { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { timerMsMax } from "./timeout.ts";

/**
 * Calls `idle` whenever a connection has carried nothing for `idleTimeoutMs`, which may be for ever, up to a
 * quarter longer.
 *
 * In place of a time-out that each request sets anew, which costs a request of HTTP/1.1 0.4 µs, and of
 * `session.setTimeout`, which holds on to every session of HTTP/2 that has closed until its time is over: two
 * kilobytes each, for as long as an idle connection may live.
 *
 * @param connection - emits `close` when it is over
 */
export function watchIdle(connection: EventEmitter, socket: Carrier, idleTimeoutMs: number, idle: () => void): void {
  let bytes = carried(socket);
  let quietLooks = 0;
  const look = (): void => {
    const before = bytes;
    bytes = carried(socket);
    quietLooks = bytes === before ? quietLooks + 1 : 0;
    if (quietLooks < looksPerTimeout) return;
    quietLooks = 0;
    idle();
  };
  const timer = setInterval(look, Math.min(idleTimeoutMs / looksPerTimeout, timerMsMax)).unref();
  connection.once("close", () => clearInterval(timer));
}

type Carrier = Pick<Socket, "bytesRead" | "bytesWritten">;

const looksPerTimeout = 4;

function carried({ bytesRead, bytesWritten }: Carrier): number {
  return bytesRead + bytesWritten;
}
