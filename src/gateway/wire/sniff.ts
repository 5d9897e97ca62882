import type { Socket } from "node:net";

/** What the first bytes of a connection say it speaks. */
export type Spoken = "http1" | "http2" | "tls";

// The start of HTTP/2's connection preface (RFC 9113 §3.4). No HTTP/1 method is called PRI.
const preface = Buffer.from("PRI * HTTP/2.0\r\n");
// A TLS record that carries a handshake (RFC 8446 §5.1).
const tlsHandshake = 22;

/**
 * Tells by the first bytes what a connection speaks.
 *
 * @returns `undefined` while more bytes are needed
 */
export function spokenBy(bytes: Uint8Array): Spoken | undefined {
  if (bytes[0] === tlsHandshake) return "tls";
  const length = Math.min(bytes.byteLength, preface.byteLength);
  if (preface.compare(bytes, 0, length, 0, length) !== 0) return "http1";
  return length === preface.byteLength ? "http2" : undefined;
}

/**
 * Waits for the first bytes of a connection and hands it on with them put back.
 *
 * A connection that ends before it has said enough is closed.
 *
 * @param timeoutMs - a connection that has not said enough by then is closed
 */
export function sniff(socket: Socket, timeoutMs: number, hand: (spoken: Spoken) => void): void {
  const giveUp = (): void => {
    stop();
    socket.destroy();
  };
  // Its own clock: a `socket.setTimeout` left behind would cut the connection in its later life.
  const clock = setTimeout(giveUp, timeoutMs);
  const stop = (): void => {
    clearTimeout(clock);
    socket.off("readable", look).off("end", giveUp).off("close", stop);
  };
  // Kept aside until it is enough: bytes that are put back make the socket readable again at once.
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
