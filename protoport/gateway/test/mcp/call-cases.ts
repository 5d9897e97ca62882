import { initializedRequest, statelessRequest } from "../../../testing/src/gateway/mcp.ts";
import { call, type Case, complete, failure, named, raw, readMaxBytes, result, text, water, watered } from "./case.ts";

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
