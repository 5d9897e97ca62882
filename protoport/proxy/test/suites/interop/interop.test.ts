import type { DescMethod, DescMethodStreaming, DescMethodUnary, JsonObject, Message } from "@bufbuild/protobuf";
import { createFileRegistry, fromJson, toJson } from "@bufbuild/protobuf";
import { Code, type StreamResponse } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createGrpcTransport, type GrpcTransport, type GrpcTransportOptions } from "../../../src/client/index.ts";
import { createProxy, type ProxyGateway } from "../../../src/create-proxy.ts";
import { readReflection } from "../../../src/forward/read-reflection.ts";
import { buildLimitMs, buildStep, collect, waitLimitMs, within } from "@protoport/testing/process";
import { buildGo, type GrpcServerProcess, startGrpcProgram } from "../../../../testing/src/gateway/grpc-programs.ts";

// gRPC's interop test descriptions (grpc/grpc, doc/interop-test-descriptions.md) with grpc-go's interop server. The
// transport runs them directly and through the proxy, and grpc-go's interop client runs them through the proxy.

const testService = "grpc.testing.TestService";
let server: GrpcServerProcess;
let proxy: ProxyGateway;
let proxyPort: number;
let methods: ReadonlyMap<string, DescMethodUnary | DescMethodStreaming>;
beforeAll(async () => {
  server = await startGrpcProgram(await buildGo("interop"));
  await using transport = createGrpcTransport({ baseUrl: server.address });
  const { signal } = new AbortController();
  const { files } = await readReflection(transport, { isSelected: (name) => name === testService, signal });
  const service = createFileRegistry(files).getService(testService);
  methods = new Map(service?.methods.map((method) => [method.name, method]));
  proxy = await createProxy({ upstreams: [{ upstream: server.address, descriptors: "reflection" }] });
  proxyPort = (await proxy.listen({ host: "127.0.0.1", port: 0 })).port;
}, buildLimitMs);
afterAll(async () => {
  await proxy.close();
  await server[Symbol.asyncDispose]();
});

test(
  "the interop client of grpc-go passes all cases through the proxy",
  async () => {
    const { file, folder } = await buildGo("caller");
    const lines = await buildStep(file, [String(proxyPort)], { folder });
    // oxfmt-ignore
    expect(lines.trim().split("\n")).toEqual([
      "empty_unary", "large_unary", "client_streaming", "server_streaming", "ping_pong", "empty_stream",
      "timeout_on_sleeping_server", "cancel_after_begin", "cancel_after_first_response", "custom_metadata",
      "status_code_and_message", "special_status_message", "unimplemented_method", "unimplemented_service",
    ]);
  },
  buildLimitMs,
);

test("20,000 concurrent calls to a server with 100 streams succeed", { timeout: buildLimitMs }, async () => {
  await using limited = await startGrpcProgram({ ...(await buildGo("interop")), args: ["-streams", "100"] });
  await using transport = createGrpcTransport({ baseUrl: limited.address });
  const method = methodOf("EmptyCall");
  if (method.methodKind !== "unary") throw new Error("EmptyCall is not a unary method");
  const calls = Array.from({ length: 20_000 }, () => transport.unary(method, undefined, undefined, undefined, {}));
  const outcomes = await within(Promise.allSettled(calls), "20,000 calls", 4 * waitLimitMs);
  expect(outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [String(outcome.reason)] : []))).toEqual([]);
});

const compressed = { sendCompression: "gzip", compressMinBytes: 0 } as const;
const routes: readonly { readonly route: string; readonly options: () => GrpcTransportOptions }[] = [
  { route: "directly", options: () => ({ baseUrl: server.address }) },
  { route: "through the proxy", options: () => ({ baseUrl: `http://127.0.0.1:${proxyPort}` }) },
  { route: "compressed", options: () => ({ baseUrl: server.address, ...compressed }) },
  {
    route: "compressed, through the proxy",
    options: () => ({ baseUrl: `http://127.0.0.1:${proxyPort}`, ...compressed }),
  },
];

describe.each(routes)("grpc-go interop cases $route", ({ options }) => {
  let transport: GrpcTransport;
  beforeAll(() => void (transport = createGrpcTransport(options())));
  afterAll(() => transport[Symbol.asyncDispose]());

  const unary = async (name: string, request: JsonObject, call: CallOptions = {}): Promise<UnaryResult> => {
    const method = methodOf(name);
    if (method.methodKind !== "unary") throw new Error(`${name} is not a unary method`);
    const message = fromJson(method.input, request);
    const response = await transport.unary(method, call.signal, call.timeoutMs, call.header, message);
    return { json: toJson(method.output, response.message), header: response.header, trailer: response.trailer };
  };
  const stream = async (name: string, requests: Requests, call: CallOptions = {}): Promise<StreamResult> => {
    const method = methodOf(name);
    if (method.methodKind === "unary") throw new Error(`${name} is a unary method`);
    const messages = (async function* () {
      for await (const request of requests) yield fromJson(method.input, request);
    })();
    const response: StreamResponse = await transport.stream(method, call.signal, call.timeoutMs, call.header, messages);
    return { header: response.header, trailer: response.trailer, messages: jsonOf(method, response.message) };
  };

  test("empty_unary passes", async () => expect((await unary("EmptyCall", {})).json).toEqual({}));

  test("large_unary passes", async () => {
    const { json } = await unary("UnaryCall", { responseSize: 314159, payload: zeros(271828) });
    expect(json).toEqual({ payload: zeros(314159) });
  });

  test("client_streaming passes", async () => {
    const requests = requestSizes.map((size) => ({ payload: zeros(size) }));
    const { messages } = await stream("StreamingInputCall", requests);
    expect(await collect(messages)).toEqual([{ aggregatedPayloadSize: 74922 }]);
  });

  test("server_streaming passes", async () => {
    const responseParameters = responseSizes.map((size) => ({ size }));
    const { messages } = await stream("StreamingOutputCall", [{ responseParameters }]);
    expect(await collect(messages)).toEqual(responseSizes.map((size) => ({ payload: zeros(size) })));
  });

  test("ping_pong passes", async () => {
    const responded = requestSizes.map(() => Promise.withResolvers<void>());
    // Each message is sent only after the response to the previous message.
    const requests = (async function* () {
      for (const [at, size] of requestSizes.entries()) {
        await responded[at - 1]?.promise;
        yield { responseParameters: [{ size: responseSizes[at] ?? 0 }], payload: zeros(size) };
      }
    })();
    const { messages } = await stream("FullDuplexCall", requests);
    const received: unknown[] = [];
    for await (const message of messages) {
      responded[received.length]?.resolve();
      received.push(message);
    }
    expect(received).toEqual(responseSizes.map((size) => ({ payload: zeros(size) })));
  });

  test("empty_stream passes", async () => {
    const { messages } = await stream("FullDuplexCall", []);
    expect(await collect(messages)).toEqual([]);
  });

  test("custom_metadata passes", async () => {
    const initial = { "x-grpc-test-echo-initial": "test_initial_metadata_value" };
    const header = { ...initial, "x-grpc-test-echo-trailing-bin": "q6ur" };
    const called = await unary("UnaryCall", { responseSize: 1, payload: zeros(1) }, { header });
    const requests = [{ responseParameters: [{ size: 1 }], payload: zeros(1) }];
    const streamed = await stream("FullDuplexCall", requests, { header });
    await collect(streamed.messages);
    for (const response of [called, streamed]) {
      expect(response.header.get("x-grpc-test-echo-initial")).toBe("test_initial_metadata_value");
      expect(response.trailer.get("x-grpc-test-echo-trailing-bin")).toBe("q6ur");
    }
  });

  test.each([
    { name: "status_code_and_message", message: "test status message" },
    { name: "special_status_message", message: "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n" },
  ])("$name passes", async ({ message }) => {
    const responseStatus = { code: 2, message };
    const failure = { code: Code.Unknown, rawMessage: message };
    await expect(unary("UnaryCall", { responseStatus })).rejects.toMatchObject(failure);
    const call = stream("FullDuplexCall", [{ responseStatus }]).then(({ messages }) => collect(messages));
    await expect(call).rejects.toMatchObject(failure);
  });

  test("unimplemented_method passes", () =>
    expect(unary("UnimplementedCall", {})).rejects.toMatchObject({ code: Code.Unimplemented }));

  test("cancel_after_begin passes", async () => {
    const controller = new AbortController();
    const call = stream("StreamingInputCall", emptyUntil(controller.signal), { signal: controller.signal });
    controller.abort();
    await expect(within(call, "the end of the call")).rejects.toMatchObject({ code: Code.Canceled });
  });

  test("cancel_after_first_response passes", async () => {
    const controller = new AbortController();
    const requests = (async function* () {
      yield { responseParameters: [{ size: 31415 }], payload: zeros(27182) };
      yield* emptyUntil(controller.signal);
    })();
    const { messages } = await stream("FullDuplexCall", requests, { signal: controller.signal });
    const iterator = messages[Symbol.asyncIterator]();
    expect((await iterator.next()).value).toEqual({ payload: zeros(31415) });
    controller.abort();
    await expect(within(iterator.next(), "the end of the call")).rejects.toMatchObject({ code: Code.Canceled });
  });

  test("timeout_on_sleeping_server passes", async () => {
    const never = new AbortController();
    const call = stream("FullDuplexCall", emptyUntil(never.signal), { timeoutMs: 1 });
    const read = call.then(({ messages }) => collect(messages));
    await expect(within(read, "the end of the call")).rejects.toMatchObject({ code: Code.DeadlineExceeded });
    never.abort();
  });
});

type Requests = Iterable<JsonObject> | AsyncIterable<JsonObject>;
type CallOptions = { signal?: AbortSignal; timeoutMs?: number; header?: Readonly<Record<string, string>> };
type UnaryResult = { readonly json: unknown; readonly header: Headers; readonly trailer: Headers };
type StreamResult = { readonly header: Headers; readonly trailer: Headers; readonly messages: AsyncIterable<unknown> };
const requestSizes = [27182, 8, 1828, 45904];
const responseSizes = [31415, 9, 2653, 58979];
const zeros = (size: number): { readonly body: string } => ({ body: Buffer.alloc(size).toString("base64") });

function methodOf(name: string): DescMethodUnary | DescMethodStreaming {
  const method = methods.get(name);
  if (method === undefined) throw new Error(`unknown method ${name}`);
  return method;
}

async function* jsonOf({ output }: DescMethod, messages: AsyncIterable<Message>): AsyncGenerator {
  for await (const message of messages) yield toJson(output, message);
}

async function* emptyUntil(signal: AbortSignal): AsyncGenerator<JsonObject> {
  await new Promise((resolve) => signal.addEventListener("abort", resolve));
  yield* [];
}
