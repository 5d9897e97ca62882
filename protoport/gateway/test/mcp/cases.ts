// oxfmt-ignore
import { type Field, type HttpRequest, initializedRequest, initializedRevision, postMcp, statelessMeta,
  statelessRequest, statelessRevision, toolNameOf, waterBedProcedure } from "@protoport/testing";

/** The gateway's `readMaxBytes`. */
export const readMaxBytes = 512;
export const water: string = toolNameOf(waterBedProcedure);
const supported: readonly string[] = [statelessRevision, initializedRevision, "2025-06-18"];
const resultMeta = { "io.modelcontextprotocol/serverInfo": { name: "protoport", version: "1" } };

/** A request, the response to it, and the procedure that `onResponse` sees. */
export interface Case {
  readonly name: string;
  readonly request: HttpRequest;
  /** Default 200. */
  readonly httpStatus?: number;
  /** The body's JSON, or `undefined` for an empty body. */
  readonly response: unknown;
  readonly procedure?: string;
  readonly header?: readonly Field[];
}

function complete(members: object): object {
  return { jsonrpc: "2.0", id: 1, result: { ...members, resultType: "complete", _meta: resultMeta } };
}

function result(members: object): object {
  return { jsonrpc: "2.0", id: 1, result: members };
}

function failure(code: number, message: string, id?: unknown, data?: object): object {
  return { jsonrpc: "2.0", ...(id !== undefined && { id }), error: { code, message, ...(data && { data }) } };
}

const text = (...texts: readonly string[]): object[] => texts.map((each) => ({ type: "text", text: each }));

export const call = (args: unknown, header: readonly Field[] = [], _meta: object = {}): HttpRequest =>
  statelessRequest("tools/call", { name: water, arguments: args, _meta }, header);

/** Returns a stateless request with other header fields. */
export function withHeader(request: HttpRequest, changes: Readonly<Record<string, string | null>>): HttpRequest {
  const kept = request.header.filter(([name]) => !(name in changes));
  const added = Object.entries(changes).flatMap(([name, value]): Field[] => (value === null ? [] : [[name, value]]));
  return { ...request, header: [...kept, ...added] };
}

export const raw = (body: string): HttpRequest => postMcp(body, [["mcp-protocol-version", initializedRevision]]);

export const watered = { bed: "7", liters: 3 };
const named: Pick<Case, "procedure"> = { procedure: waterBedProcedure };

const wrongKey = '"idempotencyKey" must be a string of 1 to 256 ASCII characters';

/** Tool calls. */
// oxfmt-ignore
export const calls: readonly Case[] = [
  { name: "a call", request: call(watered),
    response: complete({ content: text(JSON.stringify(watered)), structuredContent: watered }), ...named },
  { name: "a call of a revision with initialize",
    request: initializedRequest("tools/call", { name: water, arguments: watered }),
    response: result({ content: text(JSON.stringify(watered)), structuredContent: watered }), ...named },
  { name: "a call whose number exceeds 2^53",
    request:
    raw(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${water}","arguments":{"bed":9007199254740993}}}`),
    response: result({ content: text('{"bed":"9007199254740993"}'), structuredContent: { bed: "9007199254740993" } }),
    ...named },
  { name: "a call without arguments", request: call(undefined),
    response: complete({ content: text("{}"), structuredContent: {} }), ...named },
  { name: "a call whose arguments are null", request: call(null),
    response: complete({ content: text("{}"), structuredContent: {} }), ...named },
  { name: "a call that the handler fails", request: call({ note: "dry" }),
    response: complete({ content: text("ABORTED: dry"), isError: true }), ...named, header: [["retry-after", "7"]] },
  { name: "a call whose message is invalid", request: call({ liters: "many" }),
    response: complete({ content: text('INVALID_ARGUMENT: liters: "many" is not an int32'), isError: true }),
    ...named },
  { name: "a call whose argument is set twice",
    request:
    raw(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${water}","arguments":{"bed":1,"bed":2}}}`),
    response: result({ content: text("INVALID_ARGUMENT: bed: is set more than once"), isError: true }), ...named },
  { name: "a call whose message is larger than the RPC allows", request: call({ note: "x".repeat(readMaxBytes) }),
    response:
    complete({ content:
        text(`RESOURCE_EXHAUSTED: the message is larger than ${readMaxBytes} bytes; to accept it, set the server option readMaxBytes`),
        isError: true }), ...named },
  { name: "a call whose deadline passes", request: call({ note: "late" }, [["x-server-timeout", "0.02"]]),
    response: complete({ content: text("DEADLINE_EXCEEDED: the operation timed out"), isError: true }), ...named },
  { name: "a call whose caller needs another scope", request: call({ note: "scope" }), httpStatus: 403,
    response: failure(-32600, "the scope is missing", 1), ...named,
    header: [["www-authenticate", 'Bearer error="insufficient_scope"']] },
  { name: "a call whose handler needs a credential", request: call({ note: "credential" }), httpStatus: 401,
    response: failure(-32600, "log in", 1), ...named, header: [["www-authenticate", "Basic"]] },
  { name: "a call whose handler has no credential for another server", request: call({ note: "upstream" }),
    response: complete({ content: text("UNAUTHENTICATED: log in"), isError: true }), ...named },
  { name: "a call with an idempotency key in _meta",
    request: call({ note: "key" }, [], { idempotencyKey: 'from "meta' }),
    response: complete({ content: text(String.raw`{"note":"\"from \\\"meta\""}`),
        structuredContent: { note: String.raw`"from \"meta"` } }), ...named },
  { name: "a call with an idempotency key in its header and in _meta",
    request: call({ note: "key" }, [["idempotency-key", "from-header"]], { idempotencyKey: "from-meta" }),
    response: complete({ content: text('{"note":"from-header"}'), structuredContent: { note: "from-header" } }),
    ...named },
  { name: "a call with an idempotency key that is not a header value",
    request: call({}, [], { idempotencyKey: "a\nb" }), httpStatus: 400, response: failure(-32602, wrongKey, 1) },
  ...[7, null, "", {}].map((idempotencyKey) => ({
    name: `a call with the idempotency key ${JSON.stringify(idempotencyKey)}`,
    request: call({}, [], { idempotencyKey }),
    httpStatus: 400,
    response: failure(-32602, wrongKey, 1),
  })),
  ...[7, null, "key", []].map((_meta) => ({
    name: `a call whose _meta is ${JSON.stringify(_meta)}`,
    request: initializedRequest("tools/call", { name: water, arguments: watered, _meta }),
    httpStatus: 400,
    response: failure(-32602, '"_meta" must be an object', 1),
  })),
  { name: "a call of an unknown tool", request: statelessRequest("tools/call", { name: "none" }),
    response: failure(-32602, "unknown tool", 1) },
  { name: "a call of an RPC that is not a tool",
    request: statelessRequest("tools/call", { name: "greenhouse_v1_GreenhouseService_GetReading" }),
    response: failure(-32602, "unknown tool", 1) },
  { name: "a call without a credential", request: call({}, [["authorization", "none"]]), httpStatus: 401,
    response: failure(-32600, "who are you"), header: [["www-authenticate", "Bearer"]] },
];

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

/** Returns a `ping` with further members in one object. */
function wrap(place: string, members: string): string {
  const at = (name: string): string => (name === place ? `,${members}` : "");
  const params = `"params":{"arguments":{},"_meta":{"b":0${at("_meta")}}${at("params")}}`;
  return `{"jsonrpc":"2.0","id":1,"method":"ping",${params},"other":{"b":0${at("other")}}${at("message")}}`;
}

/** Returns a `ping` with many names and the given length, without its arguments. */
function padded(place: string, length: number): string {
  const names = Array.from({ length: 5_000 }, (_, at) => `"${at}":0`).join();
  const rest = length - wrap(place, `${names},"z":""`).length + "{}".length;
  return wrap(place, `${names},"z":"${"z".repeat(rest)}"`);
}

/** Messages that call no tool, and messages that are not valid. */
// oxfmt-ignore
export const messageCases: readonly Case[] = [
  { name: "initialize",
    request: postMcp('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}'),
    response: result({ protocolVersion: "2025-06-18",
      capabilities: { tools: {} },
      serverInfo: { name: "protoport", version: "1" },
    }) },
  { name: "initialize with an unknown revision",
    request: postMcp('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"1900-01-01"}}'),
    response: result({ protocolVersion: initializedRevision,
      capabilities: { tools: {} },
      serverInfo: { name: "protoport", version: "1" },
    }) },
  { name: "ping", request: initializedRequest("ping"), response: result({}) },
  { name: "server/discover", request: statelessRequest("server/discover"), response: complete({ supportedVersions: supported,
      capabilities: { tools: {} },
      ttlMs: 300_000,
      cacheScope: "public",
    }) },
  { name: "ping of the stateless revision, which has none", request: statelessRequest("ping"), httpStatus: 404,
    response: failure(-32601, "this server has no such method", 1) },
  { name: "initialize of the stateless revision, which has none", request: statelessRequest("initialize"),
    httpStatus: 404, response: failure(-32601, "this server has no such method", 1) },
  { name: "an unknown method of a revision with initialize", request: initializedRequest("prompts/list"),
    response: failure(-32601, "this server has no such method", 1) },
  { name: "a method with the name of a member of objects", request: initializedRequest("toString"),
    response: failure(-32601, "this server has no such method", 1) },
  { name: "a notification", request: raw('{"jsonrpc":"2.0","method":"notifications/initialized"}'), httpStatus: 202,
    response: undefined },
  { name: "a notification of the stateless revision",
    request: postMcp('{"jsonrpc":"2.0","method":"notifications/cancelled"}', [
      ["mcp-protocol-version", statelessRevision],
    ]), httpStatus: 202, response: undefined },
  { name: "a response of the client", request: raw('{"jsonrpc":"2.0","id":1,"result":{}}'), httpStatus: 202,
    response: undefined },
  { name: "a batch", request: raw('[{"jsonrpc":"2.0","id":1,"method":"ping"}]'), httpStatus: 400,
    response: failure(-32600, 'the message must be one object with "jsonrpc": "2.0"') },
  { name: "another version of JSON-RPC", request: raw('{"jsonrpc":"1.0","id":1,"method":"ping"}'), httpStatus: 400,
    response: failure(-32600, 'the message must be one object with "jsonrpc": "2.0"', 1) },
  { name: "arguments that are an array", request: call([]), httpStatus: 400,
    response: failure(-32602, '"arguments" must be an object', 1) },
  ...["null", "1.5", "1e2", "true", "{}", "[]", `"${"x".repeat(255)}"`].map((id): Case => ({ name: `the id ${id.slice(0, 9)}`,
    request: raw(`{"jsonrpc":"2.0","id":${id},"method":"ping"}`),
    httpStatus: 400,
    response: failure(-32600, '"id" must be a string or an integer of at most 256 characters'),
  })),
  ...['"a\\u0041"', "-3", '""'].map((id): Case => ({ name: `the id ${id}`,
    request: raw(`{"jsonrpc":"2.0","id":${id},"method":"ping"}`),
    response: { jsonrpc: "2.0", id: JSON.parse(id), result: {} },
  })),
  { name: "a body that is not JSON", request: raw("{"), httpStatus: 400,
    response: failure(-32700, "not valid JSON: expected a string, got the end of the text at character 2") },
  { name: "a body that is not UTF-8", request: { ...raw(""), body: Buffer.from('{"\xff"}', "latin1") }, httpStatus: 400,
    response: failure(-32700, "the bytes are not UTF-8") },
  { name: "an empty body", request: raw(""), httpStatus: 400,
    response: failure(-32700, "not valid JSON: expected an object, got the end of the text at character 1") },
  { name: "a body that is nested too deeply", request: raw("[".repeat(200)), httpStatus: 400,
    response: failure(-32600, 'the message must be one object with "jsonrpc": "2.0"') },
  { name: "arguments that are nested too deeply", request: raw(`{"params":{"arguments":${'{"a":'.repeat(200)}1`),
    httpStatus: 400, response: failure(-32700, "nested deeper than 100 levels") },
  { name: "a body that is too large", request: call({ note: "x".repeat(80 * 1024) }), httpStatus: 413,
    response: failure(
      -32600,
      `the message is larger than ${readMaxBytes + 64 * 1024} bytes; to accept it, set the server option readMaxBytes`,
    ) },
  ...["message", "params", "_meta", "other"].flatMap((place): readonly Case[] => [
    { name: `a duplicate member of ${place}`,
      request: raw(wrap(place, '"a":1,"a":2')),
      httpStatus: 400,
      response: failure(-32700, 'key "a" is set more than once'),
    },
    { name: `names of 64 KiB in ${place}, which is the most`,
      request: raw(padded(place, 64 * 1024)),
      response: result({}),
    },
    { name: `names of more than 64 KiB in ${place}`,
      request: raw(padded(place, 64 * 1024 + 1)),
      httpStatus: 413,
      response: failure(-32600, 'a message must have at most 65536 characters in addition to "arguments"'),
    },
  ]),
  ...["message", "_meta"].map((place): Case => ({ name: `a duplicate key in "arguments" of ${place}`,
    request: raw(wrap(place, '"arguments":{"a":1,"a":2}')),
    httpStatus: 400,
    response: failure(-32700, 'key "a" is set more than once'),
  })),
  { name: "another content type", request: withHeader(call({}), { "content-type": "text/plain" }), httpStatus: 415,
    response: failure(-32600, "the content type must be application/json") },
  { name: "a compressed body", request: withHeader(call({}), { "content-encoding": "gzip" }), httpStatus: 415,
    response: failure(-32600, "Content-Encoding must be identity") },
];
