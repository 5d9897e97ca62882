import type { Field, HttpRequest } from "../http/exchange.ts";

export const statelessRevision = "2026-07-28";
/** The latest MCP revision that begins with `initialize`. */
export const initializedRevision = "2025-11-25";

/** The `_meta` members that the stateless revision requires. */
export const statelessMeta: Readonly<Record<string, unknown>> = {
  "io.modelcontextprotocol/protocolVersion": statelessRevision,
  "io.modelcontextprotocol/clientCapabilities": {},
};

export const toolNameOf = (procedure: string): string => procedure.slice(1).replaceAll(/[./]/g, "_");

export function postMcp(body: string | Uint8Array, header: readonly Field[] = []): HttpRequest {
  const accept = "application/json, text/event-stream";
  const common: readonly Field[] = [
    ["content-type", "application/json"],
    ["accept", accept],
  ];
  return { httpMethod: "POST", path: "/mcp", header: [...common, ...header], body: Buffer.from(body) };
}

/** Returns a request in the stateless revision with id 1 and the header fields that the revision requires. */
export function statelessRequest(
  method: string,
  params: { readonly name?: string; readonly [member: string]: unknown } = {},
  header: readonly Field[] = [],
): HttpRequest {
  const { _meta: meta, ...others } = params;
  const body = { jsonrpc: "2.0", id: 1, method, params: { ...others, _meta: { ...statelessMeta, ...Object(meta) } } };
  const named: readonly Field[] = params.name === undefined ? [] : [["mcp-name", params.name]];
  const revision: readonly Field[] = [
    ["mcp-protocol-version", statelessRevision],
    ["mcp-method", method],
  ];
  return postMcp(JSON.stringify(body), [...revision, ...named, ...header]);
}

/** Returns a request with id 1 in a revision that begins with `initialize`. */
export function initializedRequest(method: string, params: object = {}, header: readonly Field[] = []): HttpRequest {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  return postMcp(body, [["mcp-protocol-version", initializedRevision], ...header]);
}

/** Parses the JSON in a response's Server-Sent Events. */
export const eventsOf = (body: string): unknown[] =>
  body
    .split("\n\n")
    .filter((event) => event.startsWith("data: "))
    .map((event): unknown => JSON.parse(event.slice("data: ".length)));
