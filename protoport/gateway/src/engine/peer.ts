import type { Socket } from "node:net";
import type { Peer } from "../http/index.ts";

/** Returns the remote address and port of a socket. */
export function peerOf(socket: Socket): Peer {
  return { address: socket.remoteAddress ?? "", port: socket.remotePort ?? 0 };
}

/** Makes a socket report another peer, such as the client that a PROXY header names. */
export function overridePeer(socket: Socket, { address, port }: Peer): void {
  Object.defineProperty(socket, "remoteAddress", { value: address });
  Object.defineProperty(socket, "remotePort", { value: port });
}
