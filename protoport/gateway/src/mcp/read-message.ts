import type { ConnectError } from "@connectrpc/connect";
import { FieldProblem, JsonScanner, toText } from "../protobuf/index.ts";
import { type MessageMembers, readEnvelope } from "./envelope.ts";
import { type ErrorName, isId, jsonRpcError, type McpMessage, stringOf } from "./json-rpc.ts";

/** Matches an idempotency key with up to 256 visible ASCII characters and spaces. A UUID has 36 characters. */
const idempotencyKeys = /^[\x20-\x7e]{1,256}$/;

/** Reads a message. @throws ConnectError if the body is not strict JSON or too long, as in {@link readEnvelope} */
export function readMcpMessage(body: Uint8Array): McpMessage {
  const text = decodeText(body);
  try {
    return readMessageText(text);
  } catch (error) {
    throw error instanceof FieldProblem ? jsonRpcError("parse", error.message, 400) : error;
  }
}

function decodeText(body: Uint8Array): string {
  try {
    return toText(body);
  } catch {
    throw jsonRpcError("parse", "the bytes are not UTF-8", 400);
  }
}

/** A batch, which this server does not accept, is read as an object without members. */
const noMembers: MessageMembers = { message: new Map(), params: new Map(), meta: new Map() };

function readMessageText(text: string): McpMessage {
  const isBatch = new JsonScanner(text).peek() === "array";
  const { message, params, meta } = isBatch ? noMembers : readEnvelope(text);
  const [id, method, key] = [message.get("id"), message.get("method"), meta.get("idempotencyKey")];
  // Some clients send null for a tool without parameters.
  const sent = params.get("arguments") ?? "null";
  const args = sent === "null" ? "{}" : sent;
  const version = stringOf(message.get("jsonrpc"));
  const isKey = key === undefined || idempotencyKeys.test(stringOf(key) ?? "");
  const error =
    errorUnless(version === "2.0", "invalidRequest", 'the message must be one object with "jsonrpc": "2.0"') ??
    errorUnless(isId(id ?? "0"), "invalidRequest", '"id" must be a string or an integer of at most 256 characters') ??
    errorUnless((method ?? '"').startsWith('"'), "invalidRequest", '"method" must be a string') ??
    errorUnless(args.startsWith("{"), "invalidParams", '"arguments" must be an object') ??
    errorUnless((params.get("_meta") ?? "{").startsWith("{"), "invalidParams", '"_meta" must be an object') ??
    errorUnless(isKey, "invalidParams", '"idempotencyKey" must be a string of 1 to 256 ASCII characters');
  return {
    id: id !== undefined && isId(id) ? id : undefined,
    method: stringOf(method),
    arguments: args,
    params,
    meta,
    idempotencyKey: stringOf(key),
    error,
  };
}

function errorUnless(isValid: boolean, name: ErrorName, reason: string): ConnectError | undefined {
  return isValid ? undefined : jsonRpcError(name, reason, 400);
}
