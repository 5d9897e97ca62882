/** The entry `@protoport/gateway/mcp`, for RPCs as tools. Only programs that import the entry load its code. */
export {
  createMcp,
  type McpOptions,
  type McpStreamLimits,
  type McpToolHints,
  type McpToolOptions,
  type McpCaller,
  type ProtocolExtension,
} from "./mcp/index.ts";
