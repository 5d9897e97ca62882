/** The entry `@plantstore/gateway/mcp`: RPCs as tools. Loaded only by programs that use it. */
export {
  createMcp,
  type McpOptions,
  type McpStreamLimits,
  type McpToolHints,
  type McpToolOptions,
  type McpCaller,
  type ProtocolExtension,
} from "@plantstore/mcp";
