import { Code, type ConnectError } from "@connectrpc/connect";
import { type Exchange, planBody, refuseUnknownOptions, withCode } from "../http/index.ts";
import { FieldProblem, JsonScanner, problem, toText } from "../protobuf/index.ts";
import {
  type BodyWire,
  createBodyProtocol,
  createExtension,
  createTarget,
  isOriginAllowed,
  normalizeContentType,
  type Protocol,
  type ProtocolExtension,
} from "../protocols/index.ts";
import {
  maxEnvelopeLength,
  type ErrorName,
  isId,
  jsonRpcError,
  type McpMessage,
  type MessageMembers,
  readEnvelope,
  respondWithError,
  stringOf,
} from "./json-rpc.ts";
import { mcpOptionNames, type McpOptions, streamLimitsOf } from "./options.ts";
import { isStateless } from "./revisions.ts";
import { RunningCalls } from "./running-calls.ts";
import { McpServer } from "./server.ts";
import { type ToolCall, ToolWire } from "./tool-wire.ts";
import { selectTools } from "./tools.ts";

/**
 * Creates the protocol MCP, for the option `mcp` of a gateway or proxy.
 *
 * @example
 * ```ts
 * createGateway({ routes, mcp: createMcp({ tools: ["shop.v1.OrderService.*"] }) });
 * ```
 *
 * @throws TypeError for an unknown option, an invalid path or an invalid limit. The gateway throws an Error for
 * selectors that match no RPC, and for tool names that are invalid or not unique
 */
export function createMcp(options: McpOptions): ProtocolExtension {
  refuseUnknownOptions(options, mcpOptionNames, "createMcp");
  const { path = "/mcp" } = options;
  if (!/^(?:\/[A-Za-z0-9._~-]+)+$/.test(path)) {
    const wrongPath = `path of createMcp must be similar to "/mcp", got ${JSON.stringify(path)}`;
    throw withCode(new TypeError(wrongPath), "ERR_OPTIONS");
  }
  const complete = { ...options, path, stream: streamLimitsOf(options.stream) };
  const toolNamesOf: ProtocolExtension["toolNamesOf"] = (methods) => {
    const named = methods.map((method) => ({ method }));
    return new Map([...selectTools(options.tools, named, true).values()].map(({ name, rpc }) => [rpc.method, name]));
  };
  const runningCalls = new RunningCalls();
  return createExtension(path, toolNamesOf, (parts) => {
    const server = new McpServer(complete, parts, runningCalls);
    const open = (exchange: Exchange, protocol: Protocol): BodyWire => openBody(exchange, protocol, server);
    return createBodyProtocol("mcp", path, open, (exchange, fields) => ({
      writeError: (error) => respondWithError(exchange, error, undefined, fields),
    }));
  });
}

function openBody(exchange: Exchange, protocol: Protocol, server: McpServer): BodyWire {
  let readId: string | undefined;
  return {
    problem: problemOfHeader(exchange, server),
    body: planBody(server.readMaxBytes + maxEnvelopeLength),
    readTarget: (body, caller) => {
      const message = readMcpMessage(body);
      const { id, method } = message;
      readId = id;
      if (message.error !== undefined) throw message.error;
      const stateless = isStateless(exchange, message);
      if (method === "notifications/cancelled" && id === undefined && !stateless)
        server.runningCalls.cancel(exchange, message.params.get("requestId") ?? "");
      if (method !== "tools/call" || id === undefined) return server.reply(message, stateless, caller);
      const tool = server.tools.get(stringOf(message.params.get("name")) ?? "");
      if (tool === undefined) throw jsonRpcError("invalidParams", "unknown tool", 200);
      const call: ToolCall = { server, tool, id, message, stateless };
      return createTarget(protocol, tool.rpc, (opened) => new ToolWire(opened, call), server.options.path);
    },
    writeError: (error) => respondWithError(exchange, error, readId),
    release: () => undefined,
  };
}

function problemOfHeader(exchange: Exchange, { parts }: McpServer): ConnectError | undefined {
  const { contentType, contentEncoding } = exchange.common;
  if (!isOriginAllowed(exchange, parts.corsOrigins)) {
    return problem("ERR_PROTOCOL", "pages of this origin may not call", {
      code: Code.PermissionDenied,
      httpStatus: 403,
      option: "cors.origins",
    });
  }
  if (normalizeContentType(contentType ?? "") !== "application/json") {
    return problem("ERR_CONTENT_TYPE", "the content type must be application/json");
  }
  const isIdentity = contentEncoding === null || contentEncoding === "" || contentEncoding === "identity";
  return isIdentity ? undefined : problem("ERR_ENCODING_UNSUPPORTED", "Content-Encoding must be identity");
}

/** Matches an idempotency key with up to 256 visible ASCII characters and spaces. A UUID has 36 characters. */
const idempotencyKeys = /^[\x20-\x7e]{1,256}$/;

/** Reads a message. @throws ConnectError if the body is not strict JSON or too long, as in {@link readEnvelope} */
function readMcpMessage(body: Uint8Array): McpMessage {
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
