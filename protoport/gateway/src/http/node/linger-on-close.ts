import type { Socket } from "node:net";
import { lingerBytesMax, lingerMsMax } from "../exchange/index.ts";

const lingeringSockets = new WeakSet<Socket>();

/**
 * Makes a node:http connection read and drop the rest of its last request after the response.
 *
 * Closing a socket with unread bytes resets the connection, and a client that reads only after sending the whole
 * request would lose the response. So only the server's side is closed first. The socket is closed when the client
 * closes its side (RFC 9112 §9.6) or reaches the byte limit, or after {@link lingerMsMax} milliseconds.
 */
export function lingerOnClose(socket: Socket): void {
  lingeringSockets.add(socket);
  // node:http calls `destroySoon` after the last response.
  socket.destroySoon = () => {
    socket.destroySoon = ignore;
    const bytesReadMax = socket.bytesRead + lingerBytesMax;
    // Stops node's parser, because further requests must not be processed.
    socket.removeAllListeners("data");
    socket.on("data", () => {
      if (socket.bytesRead > bytesReadMax) socket.destroy();
    });
    const timer = setTimeout(() => socket.destroy(), lingerMsMax);
    socket.on("close", () => clearTimeout(timer));
    socket.resume().end();
  };
}

/** Returns whether {@link lingerOnClose} was called. The last response was then written, but perhaps not sent. */
export function willClose(socket: Socket): boolean {
  return lingeringSockets.has(socket);
}

function ignore(): void {}
