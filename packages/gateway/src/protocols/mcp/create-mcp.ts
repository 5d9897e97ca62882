import { withCode } from "../../errors/index.ts";
import { refuseUnknownOptions } from "../../options/index.ts";
import {
  type BodyTarget,
  createExtension,
  type Protocol,
  type ProtocolExtension,
  type ProtocolParts,
} from "../index.ts";
import { createErrorRecordWriter } from "../rest/rules/index.ts";
import { McpBodyWire } from "./body-wire.ts";
import { respondWithError } from "./json-rpc.ts";
import { type McpOptions, mcpOptionNames, type McpStreamLimits, streamLimitsOf } from "./options.ts";
import { Replies } from "./replies.ts";
import type { McpServer } from "./tool-wire.ts";
import { createTools } from "./tools.ts";

/**
 * Creates the protocol MCP, for the option `mcp` of a gateway or a proxy.
 *
 * @example
 * ```ts
 * createGateway({ routes, mcp: createMcp({ tools: ["shop.v1.OrderService.*"] }) });
 * ```
 *
 * @throws TypeError for unknown options, and a path or a limit that is not valid. The gateway throws an Error for selectors that match
 * no RPC, and for names of tools that are not valid or not different
 */
export function createMcp(options: McpOptions): ProtocolExtension {
  refuseUnknownOptions(options, mcpOptionNames, "createMcp");
  const { path = "/mcp" } = options;
  if (!/^(?:\/[A-Za-z0-9._~-]+)+$/.test(path)) {
    throw withCode(
      new TypeError(`path of createMcp must be similar to "/mcp", got ${JSON.stringify(path)}`),
      "ERR_OPTIONS",
    );
  }
  const stream = streamLimitsOf(options.stream);
  return createExtension(path, (parts) => createProtocol(path, stream, options, parts));
}

function createProtocol(path: string, stream: McpStreamLimits, options: McpOptions, parts: ProtocolParts): Protocol {
  const tools = createTools(options.tools, parts);
  const server: McpServer = {
    path,
    tools,
    replies: new Replies(options, tools, parts),
    corsOrigins: parts.corsOrigins,
    writeErrorRecord: createErrorRecordWriter(undefined, parts.registry),
    stream,
    readMaxBytes: Math.max(0, ...[...tools.values()].map(({ rpc }) => rpc.options.readMaxBytes)),
  };
  const mcp: Protocol = {
    name: "mcp",
    hasHttpStatus: true,
    targetsOf: () => [],
    find: ({ httpMethod }, requestPath) => {
      if (requestPath !== path) return undefined;
      return httpMethod === "POST" ? target : { kind: "method-not-allowed", allow: "POST" };
    },
    handlesUnmatched: () => false,
    refuse: (exchange, { error, httpStatus, fields }) =>
      respondWithError(exchange, error, undefined, httpStatus, fields),
  };
  const target: BodyTarget = {
    kind: "body",
    protocol: mcp,
    rpc: undefined,
    pathTemplate: path,
    open: (exchange) => new McpBodyWire(exchange, mcp, server),
  };
  return mcp;
}
