import type { IncomingMessage } from "node:http";
import { type HeaderFields, readHeaderField } from "../exchange/index.ts";

/** Returns whether a request asks to change its connection's protocol (RFC 9110 §7.8), by the rule of node's parser. */
export function requestsUpgrade(fields: HeaderFields): boolean {
  // Connection is read second, because few requests have an Upgrade field.
  return (
    Boolean(readHeaderField(fields, "upgrade")) && /\bupgrade\b/i.test(readHeaderField(fields, "connection") ?? "")
  );
}

/**
 * Drops everything that arrives on a node:http connection after this request.
 *
 * After a request that asks for an upgrade, node's parser drops the rest of the read, and parses the next read as a new
 * request. The next read may begin in another request's body, so that clients could make node execute a body.
 */
export function stopReadingAfter(request: IncomingMessage): void {
  const { socket } = request;
  const listeners = socket.listeners("data");
  // Without its listener, node's parser also stops reading directly from the handle.
  socket.removeAllListeners("data");
  socket.on("data", (piece) => {
    if (!request.complete) for (const listener of listeners) Reflect.apply(listener, socket, [piece]);
  });
}
