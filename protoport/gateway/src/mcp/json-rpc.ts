import type { JsonValue } from "@bufbuild/protobuf";
import { Code, type ConnectError } from "@connectrpc/connect";
import { type Exchange, type HeaderFields, prepareHeaderFields, toUtf8 } from "../http/index.ts";
import { JsonScanner, problem } from "../protobuf/index.ts";
import { httpStatusOf, metadataFields } from "../protocols/index.ts";

/** The JSON texts of an object's members, by name. */
type JsonMembers = ReadonlyMap<string, string>;

/** A JSON-RPC 2.0 message. Arguments and ids are substrings of the body, so that no number becomes a double. */
export interface McpMessage {
  /** The id's JSON text, or `undefined` for a notification. */
  readonly id: string | undefined;
  /** The method's name, or `undefined` for a response. */
  readonly method: string | undefined;
  /** The JSON text of a tool's arguments. */
  readonly arguments: string;
  readonly params: JsonMembers;
  readonly meta: JsonMembers;
  readonly idempotencyKey: string | undefined;
  /** The error for an invalid message, or `undefined` for a valid message. */
  readonly error: ConnectError | undefined;
}

/** Maximum characters in an id or a progress token, which responses repeat. A UUID has 36 characters. */
const maxIdLength = 256;

/** Returns a JSON text's value, or `undefined` if the value is not a string. */
export function stringOf(text: string | undefined): string | undefined {
  if (text?.startsWith('"') !== true) return undefined;
  return text.includes("\\") ? String(JSON.parse(text)) : text.slice(1, -1);
}

/** Returns whether a JSON text is a valid id or progress token. */
export function isId(text: string): boolean {
  return text.length <= maxIdLength && (text.startsWith('"') || /^-?[0-9]+$/.test(text));
}

/** The error codes in JSON-RPC 2.0, and the error codes that MCP 2026-07-28 adds ("Error Codes"). */
const errorCodes = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  headerMismatch: -32020,
  unsupportedVersion: -32022,
} as const;

/** An error code's name. */
export type ErrorName = keyof typeof errorCodes;

interface ErrorMembers {
  readonly code: number;
  readonly data?: JsonValue | undefined;
}

/** Creates a protocol error. Errors from tools are sent as results instead. */
export function jsonRpcError(name: ErrorName, message: string, httpStatus: number, data?: JsonValue): ConnectError {
  const code = name === "methodNotFound" ? Code.Unimplemented : Code.InvalidArgument;
  const jsonRpc: ErrorMembers = { code: errorCodes[name], data };
  return Object.assign(problem("ERR_PROTOCOL", message, { code, httpStatus }), { jsonRpc });
}

/** Returns whether {@link jsonRpcError} has created an error. */
export function isProtocolError(error: ConnectError): boolean {
  return "jsonRpc" in error;
}

/** The content type field for all responses that are not streams. */
export const jsonFields: HeaderFields = prepareHeaderFields("content-type", "application/json");

/** Responds with a protocol error. `id` is JSON text, or `undefined` if the id could not be read. */
export function respondWithError(
  exchange: Exchange,
  error: ConnectError,
  id: string | undefined,
  fields: HeaderFields = [],
  httpStatus: number = httpStatusOf(error),
): void {
  const fallback: ErrorMembers = { code: errorCodes[httpStatus >= 500 ? "internal" : "invalidRequest"] };
  const { code, data } = (error as { readonly jsonRpc?: ErrorMembers }).jsonRpc ?? fallback;
  const body = JSON.stringify({ code, message: error.rawMessage, data });
  const text = `{"jsonrpc":"2.0",${id === undefined ? "" : `"id":${id},`}"error":${body}}`;
  exchange.respond(httpStatus, [...jsonFields, ...fields, ...metadataFields(error)], toUtf8(text));
}

/** The members of the three objects in a message. If an object is missing, its map is empty. */
export interface MessageMembers {
  readonly message: JsonMembers;
  readonly params: JsonMembers;
  readonly meta: JsonMembers;
}

/** Maximum characters in a message outside its tool's arguments, which take a few milliseconds to read. */
export const maxEnvelopeLength: number = 64 * 1024;

/** The objects on the path to `_meta`, by name. */
const path = ["params", "_meta"];

/**
 * Reads a JSON-RPC message's members strictly, except that a tool's arguments may have duplicate keys. The tool's
 * message reader reads the arguments again, and refuses duplicate keys.
 *
 * @throws FieldProblem if the text is not a JSON object, or ConnectError above {@link maxEnvelopeLength}
 */
export function readEnvelope(text: string): MessageMembers {
  const message = new Map<string, string>();
  const params = new Map<string, string>();
  const meta = new Map<string, string>();
  const levels = [message, params, meta];
  const scanner = new JsonScanner(text);
  let argumentsLength = 0;
  const checkLength = (): void => {
    if (scanner.at - argumentsLength > maxEnvelopeLength) throw tooLongError();
  };
  const readLevel = (level: number): void =>
    scanner.readObject((name) => {
      const kind = scanner.peek();
      const start = scanner.mark();
      if (kind === "object" && name === path[level]) readLevel(level + 1);
      else {
        scanner.skipSyntax();
        if (level === 1 && name === "arguments") argumentsLength = scanner.at - start.at;
        else {
          // The length is checked before the strict reader runs, which takes ten times as long.
          checkLength();
          scanner.rewind(start);
          scanner.skipValue();
        }
      }
      levels[level]?.set(name, text.slice(start.at, scanner.at));
    });
  readLevel(0);
  scanner.finish();
  checkLength();
  return { message, params, meta };
}

function tooLongError(): Error {
  const message = `a message must have at most ${maxEnvelopeLength} characters in addition to "arguments"`;
  return jsonRpcError("invalidRequest", message, 413);
}
