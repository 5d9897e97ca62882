import { create, type Message, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import type { RestBinding, RestRouterOptions } from "../../../src/gateway/rest/index.ts";
import { createRestRouter, httpStatusOf } from "../../../src/gateway/rest/index.ts";
import { PlantService } from "../../../src/gen/es/plantstore/v1/plant_service_pb.ts";
import { EchoSchema, KitchenSink, SinkSchema } from "../../gen/kitchensink/v1/kitchen_sink_pb.ts";

type SinkInit = MessageInitShape<typeof SinkSchema>;

// Decodes a request line and a body as the wire would.
function decode(request: string, body = "", options: RestRouterOptions = {}): Message {
  const [httpMethod = "", target = ""] = request.split(" ");
  const [path = "", query = ""] = target.split("?");
  const match = createRestRouter([...KitchenSink.methods, ...PlantService.methods], options).match(httpMethod, path);
  if (match.kind !== "binding") throw new Error(match.kind);
  const bytes = new TextEncoder().encode(body);
  return match.binding.decode({ captures: match.captures, query, contentType: "application/json", body: bytes });
}

function ignoredIn(request: string, body = ""): { readonly message: Message; readonly ignored: readonly string[] } {
  const ignored: string[] = [];
  const message = decode(request, body, {
    lenient: () => true,
    onIgnored: (method, names) => ignored.push(...names.map((name) => `${method.name} ${name}`)),
  });
  return { message, ignored };
}

function isKitchen(service: { readonly typeName: string }): boolean {
  return service.typeName.startsWith("kitchensink.");
}

describe("a lenient service", () => {
  test.each<{ request: string; body: string; want: SinkInit; ignored: string[] }>([
    {
      request: "GET /v1/query?x=1&fString=a&y.z=2",
      body: "",
      want: { fString: "a" },
      ignored: ["Query x", "Query y.z"],
    },
    {
      request: "POST /v1/sinks?q=1",
      body: '{"x":1,"fString":"a","nested":{"y":[]}}',
      want: { fString: "a", nested: {} },
      ignored: ["Create q", "Create x", "Create nested.y"],
    },
    {
      request: "PUT /v1/sinks/7",
      body: '{"fInt64":"9","fString":"a"}',
      want: { fInt64: 7n, fString: "a" },
      ignored: ["Replace f_int64"],
    },
    {
      request: "PATCH /v1/nested/a",
      body: '{"text":"b","number":1}',
      want: { nested: { text: "a", number: 1n } },
      ignored: ["Update nested.text"],
    },
    { request: "GET /v1/int64/7?f_int64=9", body: "", want: { fInt64: 7n }, ignored: ["Types f_int64"] },
    { request: "PATCH /v1/body/tags?tags=a", body: '["b"]', want: { tags: ["b"] }, ignored: ["Update tags"] },
    {
      request: "POST /v1/sinks",
      body: '{"fEnum":"COLOR_NEW","colors":["COLOR_NEW",1]}',
      want: { colors: [1] },
      ignored: [],
    },
  ])("ignores what it does not know and what is bound: $request $body", ({ request, body, want, ignored }) => {
    expect(ignoredIn(request, body)).toEqual({ message: create(SinkSchema, want), ignored });
  });

  test.each([
    { request: "GET /v1/query?fInt64=007", body: "" },
    { request: "GET /v1/query?fString=a&fString=b", body: "" },
    { request: "GET /v1/query?x=%zz", body: "" },
    { request: "GET /v1/query?nested=1", body: "" },
    { request: "POST /v1/sinks", body: '{"x":1,"x":2}' },
    { request: "POST /v1/sinks", body: '{"fInt64":"007"}' },
    { request: "DELETE /v1/sinks/7", body: "{}" },
  ])("still refuses $request $body", ({ request, body }) => {
    expect(() => ignoredIn(request, body)).toThrow(ConnectError);
  });

  test("is one of many: the others stay strict", () => {
    expect(() => decode("DELETE /plants/7?x=1", "", { lenient: isKitchen })).toThrow('unknown query parameter "x"');
    expect(decode("GET /v1/query?x=1", "", { lenient: isKitchen })).toEqual(create(SinkSchema));
  });
});

describe("canonical integers in bodies", () => {
  test.each(["7.0", "1e3", '"1e3"', "-0"])("refuse %s", (value) => {
    const options = { readJson: { canonicalIntegers: true } };
    expect(() => decode("POST /v1/sinks", `{"fInt64":${value}}`, options)).toThrow("f_int64");
    expect(() => decode("POST /v1/sinks", `{"fInt64":${value}}`)).not.toThrow();
  });
});

describe("RestBinding.decode()", () => {
  test("makes a new message for each request", () => {
    expect(decode("GET /v1/query?tags=a")).toEqual(create(SinkSchema, { tags: ["a"] }));
    expect(decode("GET /v1/query?tags=b")).toEqual(create(SinkSchema, { tags: ["b"] }));
  });

  test("tells a content type at fault by its HTTP status", () => {
    const match = createRestRouter(KitchenSink.methods).match("POST", "/v1/sinks");
    if (match.kind !== "binding") throw new Error(match.kind);
    const request = { captures: [], query: "", contentType: "text/plain", body: new Uint8Array([0x7b, 0x7d]) };
    let problem: ConnectError | undefined;
    try {
      match.binding.decode(request);
    } catch (error) {
      problem = ConnectError.from(error);
    }
    expect(problem?.code).toBe(Code.InvalidArgument);
    expect(problem && httpStatusOf(problem)).toBe(415);
  });
});

function bindingOf(request: string, options: RestRouterOptions = {}): RestBinding {
  const { bindings } = createRestRouter(KitchenSink.methods, options);
  const binding = bindings.find(({ pattern }) => `${pattern.httpMethod} ${pattern.pathTemplate}` === request);
  if (binding === undefined) throw new Error(request);
  return binding;
}

function textOf(bytes: Uint8Array | undefined): string | undefined {
  return bytes && new TextDecoder().decode(bytes);
}

describe("RestBinding.encode()", () => {
  test("answers an empty message with 204 and no body where that is asked for", () => {
    const empty = create(EchoSchema);
    expect(bindingOf("DELETE /v1/sinks/{f_int64}", { emptyResponse: 204 }).encode(empty)).toEqual({
      httpStatus: 204,
      contentType: undefined,
      body: undefined,
    });
  });

  test("answers 200 with a body where the message has fields, empty or not", () => {
    const { httpStatus, body } = bindingOf("GET /v1/query", { emptyResponse: 204 }).encode(create(EchoSchema));
    expect([httpStatus, textOf(body)]).toEqual([200, "{}"]);
  });

  test("writes JSON as it is told to", () => {
    const { body } = bindingOf("GET /v1/query", { writeJson: { alwaysEmitImplicit: true } }).encode(create(EchoSchema));
    expect(textOf(body)).toBe('{"rpc":""}');
  });

  test("finds the field that is the body also where proto names are written", () => {
    const binding = bindingOf("GET /v1/response/string", { writeJson: { useProtoFieldName: true } });
    expect(textOf(binding.encode(create(SinkSchema, { fString: "a" })).body)).toBe('"a"');
  });
});
