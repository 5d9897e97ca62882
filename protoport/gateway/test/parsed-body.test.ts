import { once } from "node:events";
import { createServer as createHttp1, request as sendRequest } from "node:http";
import { createServer as createHttp2 } from "node:http2";
import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { createGateway, type GatewayOptions, type NodeHandler } from "../src/index.ts";
import { SinkSchema } from "../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
// oxfmt-ignore
import { exchange, type Field, type HttpRequest, type HttpResponse, type HttpVersion, isPeerAtLeast, kitchenSinkOptions,
  listenOnLoopback, rowsFor, startOnLoopback, within } from "@protoport/testing";

// Requests whose body a body parser has read before the mounted gateway gets them.

/** A body parser, which reads the complete body and stores a result on the request. */
type Parser = (body: Buffer) => object;

/** Sends a request to a node server with a body parser in front of the gateway. */
async function ask(
  version: HttpVersion,
  parse: Parser,
  request: HttpRequest,
  options: Partial<GatewayOptions> = {},
): Promise<HttpResponse> {
  const { handler } = createGateway({ ...kitchenSinkOptions, ...options });
  const listener: NodeHandler = (received, response) =>
    void buffer(received).then((body) => handler(Object.assign(received, parse(body)), response));
  await using server = await startOnLoopback(version === "1.1" ? createHttp1(listener) : createHttp2(listener));
  return await within(exchange(server.address, version, request), "a response");
}

const json: Field = ["content-type", "application/json"];
const form = "application/x-www-form-urlencoded";
const sinks = "/v1/sinks";
const rpc = "/kitchensink.v1.KitchenSink/Create";
const parseJson: Parser = (body) => ({ body: JSON.parse(String(body)) as unknown });
const parseText: Parser = (body) => ({ body: String(body) });
const parseForm: Parser = (body) => ({ body: Object.fromEntries(new URLSearchParams(String(body))) });
const keepBytes: Parser = (body) => ({ body });
const keepBoth: Parser = (body) => ({ ...parseJson(body), rawBody: body });
const ways = Object.entries({ REST: sinks, Connect: rpc }).map(([protocol, path]) => ({ protocol, path }));
const versions = ["1.1", "2"] as const;
const settings = versions.flatMap((version) => ways.map(({ protocol }) => `${protocol} on HTTP/${version}`));

function post(path: string, body: string | Uint8Array, header: readonly Field[] = [json]): HttpRequest {
  return { httpMethod: "POST", path, header, body: Buffer.from(body) };
}

describe.each(versions)("the gateway after a body parser on HTTP/%s", (version) => {
  describe.each(ways)("$protocol", ({ protocol, path }) => {
    const setting = `${protocol} on HTTP/${version}`;

    test.each([
      { name: "the bytes", parse: keepBytes },
      { name: "the text", parse: parseText },
      { name: "the rawBody", parse: keepBoth },
    ])("decodes an int64 exactly from $name of the body parser", async ({ parse }) => {
      const answer = await ask(version, parse, post(path, '{"fInt64":9007199254740993}'));
      const want = [200, expect.objectContaining({ sink: { fInt64: "9007199254740993" } })];
      expect([answer.httpStatus, JSON.parse(String(answer.body))]).toEqual(want);
    });

    test.each(
      rowsFor(setting, settings, [
        { name: "an int64 as a string", body: { fInt64: "9007199254740993" } },
        { name: "the largest safe integer", body: { fInt64: 9007199254740991 }, text: true },
        { name: "a double beyond 2^53", body: { fDouble: 1e21 } },
        { name: "a Value with numbers beyond 2^53", body: { value: [-9007199254740994, 1e300] } },
        { name: "arrays, objects and strings", body: { tags: ['"', "é\u2028"], nested: {}, labels: { "": "x" } } },
        { name: "an empty object", body: {} },
      ]),
    )("accepts $name in a parsed body", async ({ body, text }) => {
      const answer = await ask(version, parseJson, post(path, JSON.stringify(body)));
      const sink = text === true ? { fInt64: String(body.fInt64) } : body;
      const want = Object.keys(sink).length === 0 ? expect.anything() : expect.objectContaining({ sink });
      expect([answer.httpStatus, JSON.parse(String(answer.body))]).toEqual([200, want]);
    });

    const rounded = "the body parser has rounded -?\\d+ to a double, which has 53 bits; send an? u?int64 as a string";
    test.each(
      rowsFor(setting, settings, [
        { field: "f_int64", body: '{"fInt64":9007199254740993}' },
        { field: "f_int64", body: '{"fInt64":-9007199254740993}' },
        { field: "f_uint64", body: '{"fUint64":18446744073709551615}' },
        { field: "ids[1]", body: '{"ids":[1,9007199254740993]}' },
        { field: "nested.number", body: '{"nested":{"number":9007199254740992}}' },
        { field: "w_int64", body: '{"wInt64":9007199254740993}' },
        { field: "f_int64", body: '{"fInt64":1e300}' },
        { field: "f_int64", body: '{"fInt64":1e999}', why: '\\\\"1e999\\\\" is not an int64' },
        { field: "f_int64", body: '{"fInt64":-1e999}', why: '\\\\"-1e999\\\\" is not an int64' },
        { field: "f_int32", body: '{"fInt32":9007199254740993}', why: '\\\\"9007199254740992.50\\\\" is not an int32' },
        { field: "f_int64", body: '{"fInt64":12345678901234.5}', why: '\\\\"12345678901234.5\\\\" is not an int64' },
      ]),
    )("refuses $body, because the parser may have rounded its number", async ({ field, body, why = rounded }) => {
      const answer = await ask(version, parseJson, post(path, body));
      expect(answer.httpStatus).toBe(400);
      expect(String(answer.body)).toMatch(new RegExp(`"message":"${field.replace(/[[\]]/g, "\\$&")}: ${why}"`));
    });

    test.each(["1e999", "-1e999"])("refuses %s, which a double cannot represent", async (number) => {
      const answer = await ask(version, parseJson, post(path, `{"fDouble":${number}}`));
      expect([answer.httpStatus, String(answer.body)]).toEqual([400, expect.stringContaining("f_double: ")]);
    });

    test("keeps the sign of zero", async () => {
      const answer = await ask(version, parseJson, post(path, '{"fDouble":-0}'));
      expect(String(answer.body)).toContain('"sink":{"fDouble":-0}');
    });

    // protobuf-es before 2.16 does not write such a key.
    test.runIf(isPeerAtLeast("@bufbuild/protobuf", "2.16"))('keeps the map key "__proto__"', async () => {
      const answer = await ask(version, parseJson, post(path, '{"labels":{"__proto__":"x"}}'));
      expect(String(answer.body)).toContain('"labels":{"__proto__":"x"}');
    });

    test.each([
      { name: "nested deeper than messages allow", parse: () => ({ body: nested(200) }) },
      { name: "nested deeper than the call stack allows", parse: () => ({ body: nested(100_000) }) },
      { name: "that contains itself", parse: () => ({ body: endless() }) },
    ])("a value $name is refused", async ({ parse }) => {
      expect((await ask(version, parse, post(path, "{}"))).httpStatus).toBe(400);
    });

    test("accepts a gzip body that the parser already decompressed", async () => {
      const request = post(path, gzipSync('{"fInt64":"7"}'), [json, ["content-encoding", "gzip"]]);
      expect(String((await ask(version, () => ({ body: { fInt64: "7" } }), request)).body)).toContain('"fInt64":"7"');
    });

    test("applies the message limit", async () => {
      const request = post(path, `{"fString":"${"x".repeat(100)}"}`);
      const answer = await ask(version, keepBytes, request, { readMaxBytes: 100 });
      expect(String(answer.body)).toContain("the message is larger than 100 bytes");
    });
  });

  test("reads the bytes of a binary message", async () => {
    const bytes = toBinary(SinkSchema, create(SinkSchema, { fInt64: 2n ** 60n }));
    const answer = await ask(version, keepBytes, post(rpc, bytes, [["content-type", "application/proto"]]));
    expect([answer.httpStatus, answer.body.includes(bytes)]).toEqual([200, true]);
  });

  test("responds with 500 if the parser stored neither bytes nor a body", async () => {
    const answer = await ask(version, () => ({}), post(sinks, '{"fInt64":"7"}'));
    const want = expect.stringContaining("mount the gateway before any body parser");
    expect([answer.httpStatus, String(answer.body)]).toEqual([500, want]);
  });

  test.each([
    [415, "an unsupported content type over REST", sinks, "must be application/json", undefined],
    [415, "an unsupported content type of an RPC", rpc, "is not supported", undefined],
    [400, "a body for a rule without one", "/v1/sinks/7", "does not accept a body", "DELETE"],
    [405, "an unregistered method", "/v1/int64/7", "not allowed", undefined],
    [404, "an unknown path", "/nothing", "no route matches this path", undefined],
  ])("responds with %s to %s, as without a body parser", async (httpStatus, _name, path, text, verb = "POST") => {
    const request = { ...post(path, "f_int64=8", [["content-type", form]]), httpMethod: verb };
    const seen: string[] = [];
    const options: Partial<GatewayOptions> = { onResponse: ({ path: of }) => void seen.push(of) };
    const answer = await ask(version, parseForm, request, options);
    expect([answer.httpStatus, String(answer.body), seen]).toEqual([httpStatus, expect.stringContaining(text), [path]]);
  });

  test.each([undefined, () => undefined])("ignores a parsed body for a rule without a body", async (requestGate) => {
    const options = { rest: { service: () => ({ ignoreBodies: true }) }, ...(requestGate && { requestGate }) };
    const request = { ...post("/v1/sinks/7", "f_int64=8", [["content-type", form]]), httpMethod: "DELETE" };
    expect((await ask(version, parseForm, request, options)).httpStatus).toBe(200);
  });
});

test("the gateway refuses a body that a parser partly read", async () => {
  const { handler } = createGateway(kitchenSinkOptions);
  const server = createHttp1((request, response) => {
    request.once("data", () => {
      request.pause();
      Object.assign(request, { body: { fInt64: "7" } });
      handler(request, response);
    });
  });
  const url = new URL(sinks, await listenOnLoopback(server));
  const sent = sendRequest(url, { method: "POST", headers: { "content-type": "application/json" } });
  sent.on("error", () => undefined).write('{"fInt64"');
  const [response] = await within(once(sent, "response"), "a response");
  expect(response).toHaveProperty("statusCode", 500);
  sent.destroy();
  server.close();
});

function nested(levels: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level++) value = [value];
  return { value };
}

function endless(): object {
  const value: { list: unknown[] } = { list: [] };
  value.list.push(value);
  return { value };
}
