import type { Socket } from "node:net";
import type { Peer } from "../index.ts";

/** Returns the other end of a socket. */
export function peerOf(socket: Socket | undefined): Peer {
  return { address: socket?.remoteAddress ?? "", port: socket?.remotePort ?? 0 };
}
