import type { Socket } from "node:net";
import type { Peer } from "../exchange/index.ts";

/** Returns the remote address and port of a socket. */
export function peerOf(socket: Socket | undefined): Peer {
  return { address: socket?.remoteAddress ?? "", port: socket?.remotePort ?? 0 };
}

/** Makes a socket report another peer to the engine's and node's HTTP servers, and to the program's handlers. */
export function overridePeer(socket: Socket, { address, port }: Peer): void {
  Object.defineProperty(socket, "remoteAddress", { value: address });
  Object.defineProperty(socket, "remotePort", { value: port });
}
