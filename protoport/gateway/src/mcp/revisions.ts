import { base64Encode } from "@bufbuild/protobuf/wire";
import { type Exchange, toUtf8 } from "../http/index.ts";
import { quoteValue } from "../protobuf/index.ts";
import { jsonRpcError, type McpMessage, stringOf } from "./json-rpc.ts";

/** MCP's stateless revision. Each request contains its revision and its client's capabilities. */
const statelessRevision = "2026-07-28";

/** The revisions that begin with `initialize`, latest first. This server handles both revisions in the same way. */
export const initializedRevisions: readonly [string, ...string[]] = ["2025-11-25", "2025-06-18"];

/** All revisions that this server implements, latest first. */
export const revisions: readonly string[] = [statelessRevision, ...initializedRevisions];

/** Maximum characters that an error repeats from a requested revision. A valid revision has 10 characters. */
const maxRevisionLength = 32;

/**
 * Returns whether a message has the stateless revision.
 *
 * @throws ConnectError for an unknown revision, and for a stateless message with incomplete `_meta`, or with header
 * fields that are missing or differ from the body ("Server Validation")
 */
export function isStateless(exchange: Exchange, message: McpMessage): boolean {
  const inHeader = exchange.get("mcp-protocol-version");
  const { params, meta, method = "" } = message;
  const inMeta = stringOf(meta.get("io.modelcontextprotocol/protocolVersion"));
  if (inMeta === undefined) {
    if (inHeader === null || initializedRevisions.includes(inHeader)) return false;
    if (inHeader !== statelessRevision) throw unsupportedError(inHeader);
    // "Header requirements for notification POSTs are not defined by this revision."
    if (message.id === undefined) return true;
    throw jsonRpcError("invalidParams", '"_meta" must have "io.modelcontextprotocol/protocolVersion"', 400);
  }
  requireSame(exchange, "MCP-Protocol-Version", inMeta);
  if (inMeta !== statelessRevision) throw unsupportedError(inMeta);
  if (meta.get("io.modelcontextprotocol/clientCapabilities")?.startsWith("{") !== true) {
    throw jsonRpcError("invalidParams", '"_meta" must have "io.modelcontextprotocol/clientCapabilities"', 400);
  }
  requireSame(exchange, "Mcp-Method", method);
  if (method === "tools/call") requireSame(exchange, "Mcp-Name", stringOf(params.get("name")) ?? "");
  return true;
}

/** Matches a value that may be sent without Base64: ASCII that does not look like Base64 (MCP, "Value Encoding"). */
const plainValue = /^(?!=\?base64\?(?:.*\?)?=$)[\t\x20-\x7e]*$/;

/**
 * @throws ConnectError if a header field is missing or repeated, or differs from the value in the body ("Server
 * Validation")
 */
export function requireSame(exchange: Exchange, name: string, expected: string): void {
  const sent = exchange.get(name);
  // The values of repeated fields are joined by commas, so most requests need no second look.
  const isNamed = (each: string, at: number): boolean => at % 2 === 0 && each.toLowerCase() === name.toLowerCase();
  const isRepeated = sent?.includes(",") === true && exchange.fields.filter(isNamed).length > 1;
  const isPlain = plainValue.test(expected);
  const isSame = (isPlain && sent === expected) || sent === `=?base64?${base64Encode(toUtf8(expected))}?=`;
  if (isSame && !isRepeated) return;
  const found = sent === null ? "is missing" : isRepeated ? "is repeated" : `is ${quoteValue(sent)}`;
  const wanted = `${quoteValue(expected)}${isPlain ? "" : ", which must be sent in Base64"}`;
  throw jsonRpcError("headerMismatch", `the header ${name} ${found}, but the body has ${wanted}`, 400);
}

function unsupportedError(revision: string): Error {
  const data = { supported: [...revisions], requested: revision.slice(0, maxRevisionLength).toWellFormed() };
  return jsonRpcError("unsupportedVersion", "unsupported protocol version", 400, data);
}
