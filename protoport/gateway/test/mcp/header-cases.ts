// oxfmt-ignore
import { type HttpRequest, initializedRequest, initializedRevision, statelessMeta, statelessRequest, statelessRevision
} from "../../../testing/src/index.ts";
import { call, type Case, complete, failure, named, result, supported, text, water, withHeader } from "./case.ts";

const discover = statelessRequest("server/discover");

function meta(members: object): HttpRequest {
  return {
    ...discover,
    body: Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "server/discover", params: members })),
  };
}

const { "io.modelcontextprotocol/protocolVersion": version, ...capabilities } = statelessMeta;

/** Header fields that the body must match. */
// oxfmt-ignore
export const headerCases: readonly Case[] = [
  { name: "a stateless request without _meta", request: meta({}), httpStatus: 400,
    response: failure(-32602, '"_meta" must have "io.modelcontextprotocol/protocolVersion"', 1) },
  { name: "a stateless request without a revision in _meta", request: meta({ _meta: capabilities }), httpStatus: 400,
    response: failure(-32602, '"_meta" must have "io.modelcontextprotocol/protocolVersion"', 1) },
  { name: "a stateless request without capabilities",
    request: meta({ _meta: { "io.modelcontextprotocol/protocolVersion": version } }), httpStatus: 400,
    response: failure(-32602, '"_meta" must have "io.modelcontextprotocol/clientCapabilities"', 1) },
  { name: "an unknown revision",
    request: withHeader(meta({ _meta: { ...statelessMeta, "io.modelcontextprotocol/protocolVersion": "v9" } }),
      { "mcp-protocol-version": "v9" }), httpStatus: 400,
    response: failure(-32022, "unsupported protocol version", 1, { supported, requested: "v9" }) },
  { name: "an unknown revision in the header alone",
    request: withHeader(initializedRequest("ping"), { "mcp-protocol-version": "1999-01-01" }), httpStatus: 400,
    response: failure(-32022, "unsupported protocol version", 1, { supported, requested: "1999-01-01" }) },
  { name: "a revision that differs in header and body",
    request: withHeader(discover, { "mcp-protocol-version": initializedRevision }), httpStatus: 400,
    response: failure(-32020,
      `the header MCP-Protocol-Version is "${initializedRevision}", but the body has "${statelessRevision}"`, 1) },
  { name: "a stateless request without a revision in its header",
    request: withHeader(discover, { "mcp-protocol-version": null }), httpStatus: 400,
    response: failure(-32020, `the header MCP-Protocol-Version is missing, but the body has "${statelessRevision}"`,
      1) },
  { name: "a method that differs in header and body",
    request: withHeader(discover, { "mcp-method": "Server/Discover" }), httpStatus: 400,
    response: failure(-32020, 'the header Mcp-Method is "Server/Discover", but the body has "server/discover"', 1) },
  { name: "a tool that differs in header and body", request: withHeader(call({}), { "mcp-name": "another" }),
    httpStatus: 400, response: failure(-32020, `the header Mcp-Name is "another", but the body has "${water}"`, 1) },
  { name: "a call without the header Mcp-Name", request: withHeader(call({}), { "mcp-name": null }), httpStatus: 400,
    response: failure(-32020, `the header Mcp-Name is missing, but the body has "${water}"`, 1) },
  { name: "a tool in Base64", request: withHeader(call({}), { "mcp-name": `=?base64?${btoa(water)}?=` }),
    response: complete({ content: text("{}"), structuredContent: {} }), ...named },
  { name: "a tool in malformed Base64", request: withHeader(call({}), { "mcp-name": "=?base64?*?=" }), httpStatus: 400,
    response: failure(-32020, `the header Mcp-Name is "=?base64?*?=", but the body has "${water}"`, 1) },
];

/** Calls from web pages. */
// oxfmt-ignore
export const originCases: readonly Case[] = [
  { name: "a page of another origin", request: withHeader(discover, { origin: "http://evil.example" }), httpStatus: 403,
    response: failure(-32600, "pages of this origin may not call; to accept it, set the server option cors.origins") },
  { name: "a page of an origin that CORS allows",
    request: withHeader(initializedRequest("ping"), { origin: "https://shop.example" }), response: result({}) },
  { name: "a page on loopback", request: withHeader(initializedRequest("ping"), { origin: "http://localhost:6274" }),
    response: result({}) },
];
