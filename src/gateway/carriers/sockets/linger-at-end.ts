import type { Socket } from "node:net";

/** Milliseconds for which a connection is read after its last answer while its client still sends. */
// Half a minute, as in nginx: 64 MiB at 18 Mbit/s, and less than an idle connection has anyway.
const lingerMs = 30_000;

/** Bytes that are read, and dropped, meanwhile. */
// 64 MiB: clients send such bodies in one go, and dropping one costs as much as a few hundred calls.
const lingerBytesMax = 64 * 1024 * 1024;

/**
 * Makes a connection of node:http with an unread request read and drop the rest of it after its last answer.
 *
 * Closing a socket with unread bytes resets the connection, and many clients read their answer only after sending
 * everything: they would lose it. So we end only our own side, and wait until the client ends its own (RFC 9112 §9.6)
 * or has used up its time or bytes.
 */
export function lingerAtEnd(socket: Socket): void {
  // node:http calls this after the last answer.
  socket.destroySoon = () => {
    socket.destroySoon = ignore;
    const bytesReadMax = socket.bytesRead + lingerBytesMax;
    // Nothing is parsed any more: further requests must not be processed.
    socket.removeAllListeners("data");
    socket.on("data", () => {
      if (socket.bytesRead > bytesReadMax) socket.destroy();
    });
    const timer = setTimeout(() => socket.destroy(), lingerMs);
    socket.on("close", () => clearTimeout(timer));
    socket.resume().end();
  };
}

function ignore(): void {}
