import type { Socket } from "node:net";
import type { ProtocolServers } from "./protocol-servers.ts";

/** What {@link drain} brings to its end. */
export interface DrainOptions {
  /** The connections that are open; who accepts none any more sees it become empty. */
  readonly sockets: ReadonlySet<Socket>;
  readonly servers: ProtocolServers;
  /** When what is left is cut, in milliseconds as `Date.now()` counts them; asked again and again, since it may come nearer. */
  readonly deadlineMs: () => number;
}

/** Lets the requests that were taken finish, and then closes every connection and the servers. */
export async function drain({ sockets, servers, deadlineMs }: DrainOptions): Promise<void> {
  servers.goAway();
  // Idle HTTP/1.1 connections stay: closing one could meet a request on its way. The next answer ends it.
  let quietSinceMs = Date.now();
  while (sockets.size > 0 && Date.now() < deadlineMs()) {
    if (servers.busy) quietSinceMs = Date.now();
    else if (Date.now() - quietSinceMs >= quietMs) break;
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
  for (const socket of sockets) socket.destroy();
  servers.close();
}

// How long nothing must have been asked before idle connections are cut: far above a round trip.
const quietMs = 1000;
const pollMs = 10;
