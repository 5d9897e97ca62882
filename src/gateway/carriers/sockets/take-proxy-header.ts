import type { Socket } from "node:net";
import type { Peer } from "../index.ts";
import { readFirstBytes } from "./first-bytes.ts";
import { readProxyHeader } from "../../proxies/index.ts";

/**
 * Waits for the PROXY header that a connection of a trusted proxy begins with, takes it off, and calls `proceed` with
 * the peer that connected to the proxy; `undefined` when the connection is the proxy's own.
 *
 * @param timeoutMs - milliseconds after which a connection without a complete header is closed, as is one whose header
 * is malformed, or that ends earlier
 */
export function takeProxyHeader(socket: Socket, timeoutMs: number, proceed: (source: Peer | undefined) => void): void {
  readFirstBytes(socket, timeoutMs, (seen) => {
    const header = readProxyHeader(seen);
    if (header.kind === "more") return undefined;
    if (header.kind === "malformed") return () => void socket.destroy();
    return () => {
      if (header.bytes < seen.byteLength) socket.unshift(seen.subarray(header.bytes));
      proceed(header.source);
    };
  });
}

/** Makes a socket report another peer than its own, to our carriers, node's, and the program's handlers alike. */
export function showPeer(socket: Socket, { address, port }: Peer): void {
  Object.defineProperty(socket, "remoteAddress", { value: address });
  Object.defineProperty(socket, "remotePort", { value: port });
}
