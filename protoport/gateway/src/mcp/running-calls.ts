import type { HeaderReader } from "../http/index.ts";
import { stringOf } from "./json-rpc.ts";

/**
 * The running calls that a `notifications/cancelled` message can cancel. The server keeps no sessions. A call belongs to
 * the session id and to the credential in its header, so that no other caller can cancel it.
 */
export class RunningCalls {
  readonly #cancelsOf = new Map<string, Set<() => void>>();

  /**
   * Adds a call until the returned function is called. A call without an issued session id is not added.
   *
   * @param id - the request id's JSON text
   */
  add(header: HeaderReader, id: string, cancel: () => void): () => void {
    const key = keyOf(header, id);
    if (key === undefined) return () => undefined;
    // A client should not use an id again, but it may.
    const cancels = this.#cancelsOf.get(key) ?? new Set();
    this.#cancelsOf.set(key, cancels.add(cancel));
    return () => {
      cancels.delete(cancel);
      if (cancels.size === 0 && this.#cancelsOf.get(key) === cancels) this.#cancelsOf.delete(key);
    };
  }

  /** Cancels the caller's calls with an id. Unknown ids are ignored (MCP 2025-11-25, "Cancellation"). */
  cancel(header: HeaderReader, id: string): void {
    for (const cancel of this.#cancelsOf.get(keyOf(header, id) ?? "") ?? []) cancel();
  }
}

/** Matches a session id as `initialize` issues it. No other caller can guess such an id. */
const issuedSession = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

function keyOf(header: HeaderReader, id: string): string | undefined {
  const session = header.get("mcp-session-id") ?? "";
  // A string may be escaped in several ways.
  const text = stringOf(id);
  return issuedSession.test(session)
    ? JSON.stringify([session, header.get("authorization"), text ?? { id }])
    : undefined;
}
