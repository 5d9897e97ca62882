import type { JsonValue } from "@bufbuild/protobuf";
import { Code, type ConnectError } from "@connectrpc/connect";
import { problem } from "../../errors/index.ts";
import { type Exchange, type HeaderFields, prepareHeaderFields, toUtf8 } from "../../exchange/index.ts";
import { metadataFields } from "../index.ts";
import { httpStatusOf } from "../rest/rules/index.ts";

/** The error codes of JSON-RPC 2.0, and those that MCP 2026-07-28 adds ("Error Codes"). */
export const jsonRpcCodes = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  headerMismatch: -32020,
  unsupportedVersion: -32022,
} as const;

/** The name of an error code of JSON-RPC. */
export type JsonRpcCode = keyof typeof jsonRpcCodes;

/** The JSON-RPC part of an error. */
interface JsonRpcPart {
  readonly code: JsonRpcCode;
  readonly data: JsonValue | undefined;
}

/** Creates an error of the protocol, as opposed to an error of a tool. */
export function jsonRpcError(code: JsonRpcCode, message: string, httpStatus: number, data?: JsonValue): ConnectError {
  const connectCode = code === "methodNotFound" ? Code.Unimplemented : Code.InvalidArgument;
  const jsonRpc: JsonRpcPart = { code, data };
  return Object.assign(problem("ERR_PROTOCOL", message, { code: connectCode, httpStatus }), { jsonRpc });
}

/** The content type of all responses that are not streams. */
export const jsonFields: HeaderFields = prepareHeaderFields("content-type", "application/json");

/**
 * Responds with an error of the protocol.
 *
 * @param id - the JSON text of the id; `undefined` if it could not be read
 * @param fields - further header fields
 */
export function respondWithError(
  exchange: Exchange,
  error: ConnectError,
  id: string | undefined,
  httpStatus: number = httpStatusOf(error),
  fields: HeaderFields = [],
): void {
  const metadata = metadataFields(error);
  exchange.respond(httpStatus, [...jsonFields, ...fields, ...metadata], toUtf8(errorText(error, id, httpStatus)));
}

/** Returns an error response of JSON-RPC. */
export function errorText(error: ConnectError, id: string | undefined, httpStatus: number): string {
  const fallback = httpStatus >= 500 ? "internal" : "invalidRequest";
  const { code, data } = (error as { readonly jsonRpc?: JsonRpcPart }).jsonRpc ?? { code: fallback, data: undefined };
  const body = JSON.stringify({ code: jsonRpcCodes[code], message: error.rawMessage, data });
  return `{"jsonrpc":"2.0",${id === undefined ? "" : `"id":${id},`}"error":${body}}`;
}
