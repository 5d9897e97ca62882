import type { HeaderReader } from "../../exchange/index.ts";
import { quote } from "../../messages/json/index.ts";
import { jsonRpcError } from "./json-rpc.ts";
import { type McpMessage, stringOf } from "./read-message.ts";

/** The stateless revision: each request has its revision and the capabilities of its client. */
export const statelessRevision = "2026-07-28";

/** The revisions that begin with `initialize`, latest first. They differ in nothing that this server uses. */
export const initializedRevisions: readonly [string, ...string[]] = ["2025-11-25", "2025-06-18"];

/** All revisions that this server implements, latest first. */
export const revisions: readonly string[] = [statelessRevision, ...initializedRevisions];

/** The most characters of a revision that an error repeats. 32: a revision has 10. */
const revisionLengthMax = 32;

/**
 * Returns whether a message is of the stateless revision.
 *
 * @throws ConnectError for an unknown revision, and for a message of the stateless revision whose `_meta` or header is
 * incomplete, or differs from the body ("Server Validation")
 */
export function isStateless(header: HeaderReader, message: McpMessage): boolean {
  const inHeader = header.get("mcp-protocol-version");
  const { meta, method = "", name = "" } = message;
  const inMeta = stringOf(meta.get("io.modelcontextprotocol/protocolVersion"));
  if (inMeta === undefined) {
    if (inHeader === null || initializedRevisions.includes(inHeader)) return false;
    if (inHeader !== statelessRevision) throw unsupportedError(inHeader);
    // "Header requirements for notification POSTs are not defined by this revision."
    if (message.id === undefined) return true;
    throw invalid('"_meta" must have "io.modelcontextprotocol/protocolVersion"');
  }
  if (inHeader !== inMeta) throw mismatch("MCP-Protocol-Version", inHeader, inMeta);
  if (inMeta !== statelessRevision) throw unsupportedError(inMeta);
  if (meta.get("io.modelcontextprotocol/clientCapabilities")?.startsWith("{") !== true)
    throw invalid('"_meta" must have "io.modelcontextprotocol/clientCapabilities"');
  requireSame(header, "Mcp-Method", method);
  if (method === "tools/call") requireSame(header, "Mcp-Name", name);
  return true;
}

/** Returns the revision of the response to `initialize`: the requested one, otherwise the latest. */
export function negotiateRevision(requested: string | undefined): string {
  return requested !== undefined && initializedRevisions.includes(requested) ? requested : initializedRevisions[0];
}

function requireSame(header: HeaderReader, name: string, expected: string): void {
  const sent = header.get(name);
  if (sent === null || decodeValue(sent) !== expected) throw mismatch(name, sent, expected);
}

/** Decodes a header value that may be Base64 ("Value Encoding"); `undefined` if it is not valid. */
function decodeValue(value: string): string | undefined {
  const encoded = /^=\?base64\?(.*)\?=$/.exec(value)?.[1];
  if (encoded === undefined) return value;
  try {
    return utf8.decode(Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0)));
  } catch {
    return undefined;
  }
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

function mismatch(name: string, sent: string | null, expected: string): Error {
  const found = sent === null ? "is missing" : `is ${quote(sent)}`;
  return jsonRpcError("headerMismatch", `the header ${name} ${found}, but the body has ${quote(expected)}`, 400);
}

function invalid(message: string): Error {
  return jsonRpcError("invalidParams", message, 400);
}

function unsupportedError(revision: string): Error {
  const requested = revision.slice(0, revisionLengthMax).toWellFormed();
  return jsonRpcError("unsupportedVersion", "unsupported protocol version", 400, {
    supported: [...revisions],
    requested,
  });
}
