import type { Socket } from "node:net";
import { lingerBytesMax, lingerMsMax } from "../exchange/index.ts";

const ending = new WeakSet<Socket>();

/**
 * Makes a node:http connection read and drop the rest of its last request after the answer.
 *
 * Closing a socket with unread bytes resets the connection, and many clients read their answer only after sending
 * everything: they would lose it. So we end only our own side, and wait until the client ends its own (RFC 9112 §9.6)
 * or has used up its time or bytes.
 *
 * @param lingerMs - its time in milliseconds
 */
export function lingerAtEnd(socket: Socket, lingerMs: number = lingerMsMax): void {
  ending.add(socket);
  // node:http calls this after the last answer.
  socket.destroySoon = () => {
    socket.destroySoon = ignore;
    const bytesReadMax = socket.bytesRead + lingerBytesMax;
    // Nothing is parsed any more: further requests must not be processed.
    socket.removeAllListeners("data");
    socket.on("data", () => {
      if (socket.bytesRead > bytesReadMax) socket.destroy();
    });
    const timer = setTimeout(() => socket.destroy(), Math.min(lingerMs, lingerMsMax));
    socket.on("close", () => clearTimeout(timer));
    socket.resume().end();
  };
}

/** Returns whether {@link lingerAtEnd} was called: the answer that ends the connection is made, if not yet sent. */
export function willEnd(socket: Socket): boolean {
  return ending.has(socket);
}

function ignore(): void {}
