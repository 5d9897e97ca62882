import { create, createRegistry, type DescService, type Message, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import type { RestBinding, RestRouteOptions } from "../../../../src/protocols/rest/rules/index.ts";
import { compileRestRoutes, httpStatusOf } from "../../../../src/protocols/rest/rules/index.ts";
import { OrderService } from "../../../../../testing/src/gen/orders/v1/orders_pb.ts";
import { GetShelfRequestSchema, Shelves } from "../../../../../testing/src/gen/kitchensink/v1/shelves_pb.ts";
// oxfmt-ignore
import { file_kitchensink_v1_legacy, LegacySchema, LegacySink
} from "../../../../../testing/src/gen/kitchensink/v1/legacy_pb.ts";
// oxfmt-ignore
import { Color, EchoSchema, KitchenSink, SinkSchema
} from "../../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";

type SinkInit = MessageInitShape<typeof SinkSchema>;

// Decodes a request line and a body.
function decode(request: string, body = "", options: RestRouteOptions = {}): Message {
  const [httpMethod = "", target = ""] = request.split(" ");
  const [path = "", query = ""] = target.split("?");
  const match = compileRestRoutes([...KitchenSink.methods, ...OrderService.methods], options).match(httpMethod, path);
  if (match.kind !== "binding") throw new Error(match.kind);
  const bytes = new TextEncoder().encode(body);
  return match.binding.decode({ captures: match.captures, query, contentType: "application/json", body: bytes });
}

function ignoredIn(request: string, body = ""): { readonly message: Message; readonly ignored: readonly string[] } {
  const ignored: string[] = [];
  const message = decode(request, body, {
    service: () => ({ lenient: true }),
    onIgnored: (method, names) => ignored.push(...names.map((name) => `${method.name} ${name}`)),
  });
  return { message, ignored };
}

test.each<[request: string, body: string, want: SinkInit, ignored: string[]]>(
  // oxfmt-ignore
  [
    ["GET /v1/query?x=1&fString=a&y.z=2", "", { fString: "a" }, ["Query x", "Query y.z"]],
    ["POST /v1/sinks?q=1", '{"x":1,"fString":"a","nested":{"y":[]}}', { fString: "a", nested: {} },
      ["Create q", "Create x", "Create nested.y"]],
    ["PUT /v1/sinks/7", '{"fInt64":"9","fString":"a"}', { fInt64: 7n, fString: "a" }, ["Replace f_int64"]],
    ["PATCH /v1/nested/a", '{"text":"b","number":1}', { nested: { text: "a", number: 1n } }, ["Update nested.text"]],
    ["PATCH /v1/inner/a", '{"inner":{"inner":{"text":"b","number":1}}}',
      { nested: { inner: { inner: { text: "a", number: 1n } } } }, ["Update nested.inner.inner.text"]],
    ["GET /v1/int64/7?f_int64=9", "", { fInt64: 7n }, ["Types f_int64"]],
    ["PATCH /v1/body/tags?tags=a", '["b"]', { tags: ["b"] }, ["Update tags"]],
    ["POST /v1/sinks", '{"fEnum":"COLOR_NEW","colors":["COLOR_NEW",1]}', { colors: [1] },
      ['Create f_enum="COLOR_NEW"', 'Create colors[0]="COLOR_NEW"']],
    ["POST /v1/sinks",
      '{"nesteds":[{},{"y":1}],"palette":{"a\\"b":"NEW","c":"COLOR_RED"},"nestedById":{"7":{"z":1}}}',
      { nesteds: [{}, {}], palette: { c: Color.RED }, nestedById: { "7": {} } },
      ["Create nesteds[1].y", 'Create palette["a\\"b"]="NEW"', 'Create nested_by_id["7"].z']],
  ],
)("a lenient service ignores unknown names and path fields (%s %s)", (request, body, want, ignored) => {
  expect(ignoredIn(request, body)).toEqual({ message: create(SinkSchema, want), ignored });
});

test.each([
  { request: "GET /v1/query?fInt64=007", body: "" },
  { request: "GET /v1/query?fString=a&fString=b", body: "" },
  { request: "GET /v1/query?x=%zz", body: "" },
  { request: "GET /v1/query?nested=1", body: "" },
  { request: "GET /v1/query?palette=NEW", body: "" },
  { request: "GET /v1/query?fEnum=COLOR_NEW", body: "" },
  { request: "GET /v1/query?fEnum=color_red", body: "" },
  { request: "GET /v1/query?colors=COLOR_RED&colors=COLOR_NEW", body: "" },
  { request: "GET /v1/query?child.fEnum=COLOR_NEW", body: "" },
  { request: "DELETE /v1/sinks/7?fEnum=COLOR_NEW", body: "" },
  { request: "GET /v1/query?fEnum=01", body: "" },
  { request: "GET /v1/query?fEnum=", body: "" },
  { request: "GET /v1/query?fEnum=1RED", body: "" },
  { request: "GET /v1/query?fEnum=RED-", body: "" },
  { request: "GET /v1/enum/COLOR_NEW", body: "" },
  { request: "POST /v1/sinks", body: '{"x":1,"x":2}' },
  { request: "POST /v1/sinks", body: '{"fInt64":"007"}' },
  { request: "DELETE /v1/sinks/7", body: "{}" },
])("a lenient service refuses $request $body as invalid", ({ request, body }) => {
  expect(() => ignoredIn(request, body)).toThrow(ConnectError);
});

test("a lenient service reports the first ignored names and the total count", () => {
  const reported: unknown[] = [];
  const onIgnored = (_method: unknown, names: readonly string[], count: number): number =>
    reported.push({ first: names[0], last: names.at(-1), count });
  const many = Array.from({ length: 5000 }, (_, at) => `"x${at}":0`).join();
  decode("POST /v1/sinks?q=1&r=2", `{${many},"colors":["NEW","NEWER"]}`, {
    service: () => ({ lenient: true }),
    onIgnored,
  });
  expect(reported).toEqual([{ first: "q", last: "x15", count: 5004 }]);
});

test("a lenient service does not make other services lenient", () => {
  const options: RestRouteOptions = { service: ({ typeName }) => ({ lenient: typeName === KitchenSink.typeName }) };
  expect(() => decode("DELETE /orders/7?x=1", "", options)).toThrow('unknown query parameter "x"');
  expect(decode("GET /v1/query?x=1", "", options)).toEqual(create(SinkSchema));
});

// Everything except printable ASCII must be escaped (RFC 3986 §3.4).
test.each(["fString=é", "fString=\u007f", "fString=\u0000", "fString=a\tb", "é=a"])(
  "a malformed query such as %j is refused",
  (query) => expect(() => decode(`GET /v1/query?${query}`)).toThrow("is malformed"),
);

test("RestBinding.decode() returns a new message for each request", () => {
  expect(decode("GET /v1/query?tags=a")).toEqual(create(SinkSchema, { tags: ["a"] }));
  expect(decode("GET /v1/query?tags=b")).toEqual(create(SinkSchema, { tags: ["b"] }));
});

test("RestBinding.decode() decodes an int64 with jstype JS_STRING as a string", () => {
  const want = create(SinkSchema, { longText: "7", longTexts: ["8"] });
  expect(decode("GET /v1/query?longText=7&longTexts=8")).toEqual(want);
});

test("RestBinding.decode() throws an error with HTTP status 415 for a wrong content type", () => {
  const match = compileRestRoutes(KitchenSink.methods).match("POST", "/v1/sinks");
  if (match.kind !== "binding") throw new Error(match.kind);
  const request = { captures: [], query: "", contentType: "text/plain", body: new Uint8Array([0x7b, 0x7d]) };
  let problem: ConnectError | undefined;
  try {
    match.binding.decode(request);
  } catch (error) {
    problem = ConnectError.from(error);
  }
  expect([problem?.code, problem && httpStatusOf(problem)]).toEqual([Code.InvalidArgument, 415]);
});

function bindingOf(
  request: string,
  options: RestRouteOptions = {},
  { methods }: DescService = KitchenSink,
): RestBinding {
  const { bindings } = compileRestRoutes(methods, options);
  const binding = bindings.find(({ pattern }) => `${pattern.httpMethod} ${pattern.pathTemplate}` === request);
  if (binding === undefined) throw new Error(request);
  return binding;
}

const textOf = (bytes: Uint8Array | undefined): string | undefined => bytes && new TextDecoder().decode(bytes);

describe("RestBinding.encode()", () => {
  test("returns 204 without a body for google.protobuf.Empty if emptyResponse is 204", () => {
    const empty = create(EchoSchema);
    const want = { httpStatus: 204, contentType: undefined, body: undefined };
    expect(bindingOf("DELETE /v1/sinks/{f_int64}", { emptyResponse: 204 }).encode(empty)).toEqual(want);
  });

  test("returns the prepared response for a type without fields", () => {
    const binding = bindingOf("DELETE /v1/sinks/{f_int64}");
    expect(binding.encode(create(EchoSchema))).toBe(binding.preparedResponse);
    expect(textOf(binding.preparedResponse?.body)).toBe("{}");
    expect(bindingOf("GET /v1/query").preparedResponse).toBeUndefined();
  });

  test("returns 200 with a body if the type has fields", () => {
    const { httpStatus, body } = bindingOf("GET /v1/query", { emptyResponse: 204 }).encode(create(EchoSchema));
    expect([httpStatus, textOf(body)]).toEqual([200, "{}"]);
  });

  test("applies the JSON options", () => {
    const { body } = bindingOf("GET /v1/query", { writeJson: { alwaysEmitImplicit: true } }).encode(create(EchoSchema));
    expect(textOf(body)).toBe('{"rpc":""}');
  });

  test("applies the JSON options to a message with a field mask", () => {
    const options = { writeJson: { alwaysEmitImplicit: true } };
    const { body } = bindingOf("GET /v1/{name=shelves/*}", options, Shelves).encode(create(GetShelfRequestSchema));
    expect(textOf(body)).toBe('{"name":"","moreMasks":[],"masksByName":{}}');
  });

  test.each<[why: string, request: string, service: DescService, message: Message, want: string]>(
    // oxfmt-ignore
    [
      ["another field is an empty Value", "GET /v1/response/string", KitchenSink,
        create(SinkSchema, { fString: "a", value: {} }), '"a"'],
      ["a required field is missing", "GET /v1/legacies/number", LegacySink, create(LegacySchema, { number: 8 }), "8"],
      ["an extension lacks its required field", "GET /v1/legacies/number", LegacySink,
        create(LegacySchema, { $unknown: [{ no: 102, wireType: 2, data: new Uint8Array([0]) }], number: 8 }), "8"],
    ],
  )("writes the response body field even if %s", (_why, request, service, message, want) => {
    const options = { writeJson: { registry: createRegistry(file_kitchensink_v1_legacy) } };
    expect(textOf(bindingOf(request, options, service).encode(message).body)).toBe(want);
  });

  test("writes proto names if configured, except in a field mask", () => {
    const binding = bindingOf("POST /v1/shelves:get", { writeJson: { useProtoFieldName: true } }, Shelves);
    const { body } = binding.encode(create(GetShelfRequestSchema, { name: "a", readMask: { paths: ["built_at"] } }));
    expect(JSON.parse(textOf(body) ?? "")).toEqual({ name: "a", read_mask: "builtAt" });
  });

  test("finds the response body field if proto names are configured", () => {
    const binding = bindingOf("GET /v1/response/string", { writeJson: { useProtoFieldName: true } });
    expect(textOf(binding.encode(create(SinkSchema, { fString: "a" })).body)).toBe('"a"');
  });
});
