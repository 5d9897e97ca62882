import { Code, type ConnectError } from "@connectrpc/connect";
import { problem } from "../protobuf/index.ts";
import { withCode, type Exchange, planBody, refuseUnknownOptions } from "../http/index.ts";
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
import { envelopeLengthMax } from "./envelope.ts";
import { jsonRpcError, respondWithError, stringOf } from "./json-rpc.ts";
import { readMcpMessage } from "./read-message.ts";
import { type McpOptions, mcpOptionNames, streamLimitsOf } from "./options.ts";
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
    body: planBody(server.readMaxBytes + envelopeLengthMax),
    readTarget: (body, caller) => {
      const message = readMcpMessage(body);
      const { id, method } = message;
      readId = id;
      if (message.error !== undefined) throw message.error;
      const stateless = isStateless(exchange, message);
      if (method === "notifications/cancelled" && !stateless)
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
