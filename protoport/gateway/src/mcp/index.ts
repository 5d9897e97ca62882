/**
 * The Model Context Protocol (https://modelcontextprotocol.io/specification). AI agents call RPCs as tools in the same
 * process, with the same credentials, interceptors, limits and logs as in every other protocol.
 *
 * Serves the revisions in `revisions.ts` at one path. `json-rpc.ts` reads a request, and `revisions.ts` checks its
 * revision. A tool call is served by `tool-wire.ts`, and `server.ts` replies to other requests. `tools.ts` selects and
 * names the tools, and `definitions.ts` describes them with the `openapi/` schemas.
 */
export { createMcp } from "./create-mcp.ts";
export type { McpOptions, McpStreamLimits, McpToolHints, McpToolOptions } from "./options.ts";
export type { BodyCaller as McpCaller, ProtocolExtension } from "../protocols/index.ts";
