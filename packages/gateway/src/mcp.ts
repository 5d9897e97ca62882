/**
 * The entry `@plantstore/gateway/mcp`, which serves RPCs as tools. Only programs that import this entry load its code.
 */
export {
  createMcp,
  type McpOptions,
  type McpStreamLimits,
  type McpToolHints,
  type McpToolOptions,
  type McpCaller,
  type ProtocolExtension,
} from "@plantstore/mcp";
