import type { Socket } from "node:net";
import { readFirstBytes } from "./first-bytes.ts";

/** The protocol that a connection begins with. */
export type FirstProtocol = "http1" | "http2" | "tls";

// The start of HTTP/2's connection preface (RFC 9113 §3.4). No HTTP/1 method is called PRI.
const preface = Buffer.from("PRI * HTTP/2.0\r\n");
// The type of a TLS record that carries a handshake (RFC 8446 §5.1).
const tlsHandshake = 22;

/** Returns the protocol of a connection, judged by its first bytes; `undefined` while more bytes are needed. */
export function firstProtocolOf(bytes: Uint8Array): FirstProtocol | undefined {
  if (bytes[0] === tlsHandshake) return "tls";
  const length = Math.min(bytes.byteLength, preface.byteLength);
  if (preface.compare(bytes, 0, length, 0, length) !== 0) return "http1";
  return length === preface.byteLength ? "http2" : undefined;
}

/**
 * Waits for the first bytes of a connection, puts them back, and calls `proceed` with its protocol.
 *
 * @param timeoutMs - milliseconds after which a connection without enough bytes is closed, as is one that ends earlier
 */
export function sniff(socket: Socket, timeoutMs: number, proceed: (protocol: FirstProtocol) => void): void {
  readFirstBytes(socket, timeoutMs, (seen) => {
    const protocol = firstProtocolOf(seen);
    if (protocol === undefined) return undefined;
    return () => {
      socket.unshift(seen);
      proceed(protocol);
    };
  });
}
