import type { Socket } from "node:net";

/** The protocol of a connection, judged by its first bytes. */
export type Spoken = "http1" | "http2" | "tls";

// The start of HTTP/2's connection preface (RFC 9113 §3.4). No HTTP/1 method is called PRI.
const preface = Buffer.from("PRI * HTTP/2.0\r\n");
// The type of a TLS record that carries a handshake (RFC 8446 §5.1).
const tlsHandshake = 22;

/** Returns what a connection speaks, judged by its first bytes; `undefined` while more bytes are needed. */
export function spokenBy(bytes: Uint8Array): Spoken | undefined {
  if (bytes[0] === tlsHandshake) return "tls";
  const length = Math.min(bytes.byteLength, preface.byteLength);
  if (preface.compare(bytes, 0, length, 0, length) !== 0) return "http1";
  return length === preface.byteLength ? "http2" : undefined;
}

/**
 * Waits for the first bytes of a connection, puts them back, and calls `hand` with what it speaks.
 *
 * @param timeoutMs - a connection that has not sent enough by then, or ends before, is closed
 */
export function sniff(socket: Socket, timeoutMs: number, hand: (spoken: Spoken) => void): void {
  const giveUp = (): void => {
    stop();
    socket.destroy();
  };
  // A separate timer: a `socket.setTimeout` left behind would end the connection later in its life.
  const clock = setTimeout(giveUp, timeoutMs);
  const stop = (): void => {
    clearTimeout(clock);
    socket.off("readable", look).off("end", giveUp).off("close", stop);
  };
  // Kept here until there are enough: bytes that are put back make the socket readable again at once.
  let seen: Buffer = Buffer.alloc(0);
  const look = (): void => {
    const bytes: Buffer | null = socket.read();
    if (bytes === null) return;
    seen = seen.byteLength === 0 ? bytes : Buffer.concat([seen, bytes]);
    const spoken = spokenBy(seen);
    if (spoken === undefined) return;
    stop();
    socket.unshift(seen);
    hand(spoken);
  };
  socket.on("readable", look).on("end", giveUp).on("close", stop);
}
