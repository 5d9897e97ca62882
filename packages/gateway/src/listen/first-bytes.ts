import type { Socket } from "node:net";
import { readProxyHeader } from "../trusted-proxies/index.ts";
import { type Peer, startDeadline } from "../exchange/index.ts";

/** The protocol that a connection begins with. */
export type FirstProtocol = "http1" | "http2" | "tls";

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

/** Returns the protocol of a connection, judged by its first bytes; `undefined` while more bytes are needed. */
export function firstProtocolOf(bytes: Uint8Array): FirstProtocol | undefined {
  if (bytes[0] === tlsHandshake) return "tls";
  const length = Math.min(bytes.byteLength, preface.byteLength);
  if (preface.compare(bytes, 0, length, 0, length) !== 0) return "http1";
  return length === preface.byteLength ? "http2" : undefined;
}

// The start of HTTP/2's connection preface (RFC 9113 §3.4). No HTTP/1 method is called PRI.
const preface = Buffer.from("PRI * HTTP/2.0\r\n");
// The type of a TLS record that carries a handshake (RFC 8446 §5.1).
const tlsHandshake = 22;

/**
 * Waits for the PROXY header that a connection of a trusted proxy begins with, takes it off, and calls `proceed` with
 * the peer that connected to the proxy; `undefined` when the connection is the proxy's own. A connection whose header is
 * malformed, or incomplete after `timeoutMs` milliseconds, is closed.
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

/** @param judge - gets all that has arrived, and returns a function that goes on; `undefined` to wait for more bytes */
function readFirstBytes(socket: Socket, timeoutMs: number, judge: (seen: Buffer) => (() => void) | undefined): void {
  const giveUp = (): void => {
    stop();
    socket.destroy();
  };
  // A separate timer: a `socket.setTimeout` left behind would end the connection later in its life.
  const stopClock = startDeadline(timeoutMs, giveUp);
  const stop = (): void => {
    stopClock();
    socket.off("readable", look).off("end", giveUp).off("close", stop);
  };
  // Kept here until there are enough: bytes that are put back would make the socket readable again at once.
  let seen: Buffer = Buffer.alloc(0);
  const look = (): void => {
    const bytes: Buffer | null = socket.read();
    if (bytes === null) return;
    seen = seen.byteLength === 0 ? bytes : Buffer.concat([seen, bytes]);
    const goOn = judge(seen);
    if (goOn === undefined) return;
    stop();
    goOn();
  };
  socket.on("readable", look).on("end", giveUp).on("close", stop);
}
