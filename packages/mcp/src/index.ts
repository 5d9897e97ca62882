/**
 * The Model Context Protocol (https://modelcontextprotocol.io/specification): RPCs as AI agent tools, in process, with
 * the same credentials, interceptors, limits and logs as in every other protocol.
 *
 * Serves the revisions in `revisions.ts` at one path. A request is read by `json-rpc.ts`, checked by `revisions.ts`,
 * and then is a tool call (`tool-wire.ts`) or gets a reply (`server.ts`). `tools.ts` selects and names the tools, and
 * `definitions.ts` describes them with the `openapi/` schemas. Loaded only by programs that use it.
 */
export { createMcp } from "./create-mcp.ts";
export type { McpOptions, McpStreamLimits, McpToolHints, McpToolOptions } from "./options.ts";
export type { BodyCaller as McpCaller, ProtocolExtension } from "@plantstore/protocols";
