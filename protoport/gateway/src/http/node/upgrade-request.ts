import type { IncomingMessage } from "node:http";
import { type HeaderFields, readHeaderField } from "../exchange/index.ts";

/** Returns whether node's parser treats a request as a request for a protocol upgrade (RFC 9110 §7.8). */
export function requestsUpgrade(fields: HeaderFields): boolean {
  // Checks Upgrade before Connection, because few requests have an Upgrade field.
  return (
    Boolean(readHeaderField(fields, "upgrade")) && /\bupgrade\b/i.test(readHeaderField(fields, "connection") ?? "")
  );
}

/**
 * Drops all bytes that arrive on a node:http connection after a request. After an upgrade request, node's parser drops
 * the rest of the read, and parses the next read as a new request. The next read may begin in another request's body,
 * so that node could execute a body as a request.
 */
export function stopReadingAfter(request: IncomingMessage): void {
  const { socket } = request;
  const listeners = socket.listeners("data");
  // Without the "data" listener, node's parser also stops reading directly from the handle.
  socket.removeAllListeners("data");
  socket.on("data", (piece) => {
    if (!request.complete) for (const listener of listeners) Reflect.apply(listener, socket, [piece]);
  });
}
