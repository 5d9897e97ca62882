import type { Socket } from "node:net";
import type { Peer } from "../exchange/index.ts";

/** Returns a socket's other end. */
export function peerOf(socket: Socket | undefined): Peer {
  return { address: socket?.remoteAddress ?? "", port: socket?.remotePort ?? 0 };
}

/** Makes a socket report another peer than its own to the engine's HTTP servers, node's, and the program's handlers. */
export function showPeer(socket: Socket, { address, port }: Peer): void {
  Object.defineProperty(socket, "remoteAddress", { value: address });
  Object.defineProperty(socket, "remotePort", { value: port });
}
