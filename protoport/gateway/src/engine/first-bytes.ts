import type { Socket } from "node:net";
import { readProxyHeader } from "../http/node-entry.ts";
import { runAfterTurn, type Peer, startDeadline } from "../http/index.ts";

/** The protocol of a connection, detected from the first bytes. */
export type FirstProtocol = "http1" | "http2" | "tls";

/**
 * Waits for the first bytes on a connection, and calls `proceed` with the protocol and the bytes. Closes the connection
 * if the client closes its side, or after `timeoutMs` milliseconds without enough bytes.
 *
 * @param proceed - must add a `data` listener or call {@link putBack} before it returns, because the socket is flowing
 */
export function detectProtocol(
  socket: Socket,
  timeoutMs: number,
  proceed: (protocol: FirstProtocol, bytes: Buffer) => void,
): void {
  readFirstBytes(socket, timeoutMs, (bytes) => {
    const protocol = firstProtocolOf(bytes);
    return protocol === undefined ? undefined : () => proceed(protocol, bytes);
  });
}

/** Puts bytes back into a socket, and stops its flowing mode, so that the next reader reads the bytes first. */
export function putBack(socket: Socket, bytes: Buffer): void {
  socket.on("readable", ignore);
  socket.unshift(bytes);
  socket.off("readable", ignore);
}

function ignore(): void {}

/** Returns the protocol of a connection from the first bytes, or `undefined` while more bytes are needed. */
export function firstProtocolOf(bytes: Uint8Array): FirstProtocol | undefined {
  if (bytes[0] === tlsHandshake) return "tls";
  const length = Math.min(bytes.byteLength, preface.byteLength);
  if (preface.compare(bytes, 0, length, 0, length) !== 0) return "http1";
  return length === preface.byteLength ? "http2" : undefined;
}

// The start of HTTP/2's connection preface (RFC 9113 §3.4). No HTTP/1 method is called PRI.
const preface = Buffer.from("PRI * HTTP/2.0\r\n");
// The record type for a TLS handshake (RFC 8446 §5.1).
const tlsHandshake = 22;

/**
 * Waits for the PROXY header at the start of a trusted proxy's connection, and removes the header. `proceed` gets the
 * peer that connected to the proxy, or `undefined` without an IP address, as for the proxy's own connections. Closes
 * the connection if the header is malformed, or incomplete after `timeoutMs` milliseconds.
 */
export function consumeProxyHeader(
  socket: Socket,
  timeoutMs: number,
  proceed: (source: Peer | undefined) => void,
): void {
  readFirstBytes(socket, timeoutMs, (bytes) => {
    const header = readProxyHeader(bytes);
    if (header.kind === "more") return undefined;
    if (header.kind === "malformed") return () => void socket.destroy();
    return () => {
      if (header.bytes < bytes.byteLength) socket.unshift(bytes.subarray(header.bytes));
      proceed(header.source);
    };
  });
}

/** `parse` gets all bytes so far, and returns a function that continues, or `undefined` to wait for more bytes. */
function readFirstBytes(socket: Socket, timeoutMs: number, parse: (bytes: Buffer) => (() => void) | undefined): void {
  const close = (): void => {
    stop();
    socket.destroy();
  };
  let isWaiting = true;
  const expire = (): void => {
    if (isWaiting) close();
  };
  // Uses a separate timer, because `socket.setTimeout` would stay set and close the connection later. The timer first
  // reads bytes that have arrived while the process was paused.
  const stopTimer = startDeadline(timeoutMs, () => runAfterTurn(expire, undefined));
  const stop = (): void => {
    isWaiting = false;
    stopTimer();
    socket.off("data", read).off("end", close).off("close", stop);
  };
  let received: Buffer | undefined;
  const read = (bytes: Buffer): void => {
    received = received === undefined ? bytes : Buffer.concat([received, bytes]);
    const continueWith = parse(received);
    if (continueWith === undefined) return;
    stop();
    continueWith();
  };
  socket.on("data", read).on("end", close).on("close", stop);
}
