// oxfmt-ignore
import { initializedRequest, initializedRevision, postMcp, statelessRequest, statelessRevision
} from "../../../testing/src/gateway/mcp.ts";
import { call, type Case, complete, failure, raw, readMaxBytes, result, supported, withHeader } from "./case.ts";

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
