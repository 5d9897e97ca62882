import type { Http2Session } from "node:http2";

/**
 * Calls `idle` whenever a connection has carried nothing for `idleTimeoutMs`, up to a quarter longer.
 *
 * In place of `session.setTimeout`, which holds on to every session that has closed until its time is over:
 * two kilobytes each, for as long as an idle connection may live.
 */
export function watchIdle(session: Http2Session, idleTimeoutMs: number, idle: () => void): void {
  const { socket } = session;
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
  const timer = setInterval(look, idleTimeoutMs / looksPerTimeout).unref();
  session.once("close", () => clearInterval(timer));
}

const looksPerTimeout = 4;

function carried({ bytesRead, bytesWritten }: Http2Session["socket"]): number {
  return bytesRead + bytesWritten;
}
