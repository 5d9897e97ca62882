import {
  createFileRegistry,
  type DescMethod,
  type DescMethodStreaming,
  type DescMethodUnary,
  fromJson,
  type JsonObject,
  type Message,
  toJson,
} from "@bufbuild/protobuf";
import { Code, type StreamResponse } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createGrpcTransport, type GrpcTransport, type GrpcTransportOptions } from "../../../src/client/index.ts";
import { createProxy, type ProxyGateway } from "../../../src/create-proxy.ts";
import { readReflection } from "../../../src/forward/read-reflection.ts";
import { collect } from "../../../../testing/src/collect.ts";
import { waitLimitMs, within } from "../../../../testing/src/deadline.ts";
import { buildGo, type GrpcServerProcess, startGrpcProgram } from "../../../../testing/src/gateway/grpc-programs.ts";
import { buildLimitMs, buildStep } from "../../../../testing/src/process/build-step.ts";

// gRPC's interop test descriptions (grpc/grpc, doc/interop-test-descriptions.md), before the server that grpc-go has for
// them: by our transport, straight and through the proxy, and by grpc-go's own client through the proxy.

const testService = "grpc.testing.TestService";

let server: GrpcServerProcess;
let proxy: ProxyGateway;
let proxyPort: number;
let methods: ReadonlyMap<string, DescMethodUnary | DescMethodStreaming>;

beforeAll(async () => {
  server = await startGrpcProgram(await buildGo("interop"));
  await using transport = createGrpcTransport({ baseUrl: server.address });
  const { files } = await readReflection(transport, { isMeant: (name) => name === testService });
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
  "grpc-go's client has all its cases through the proxy",
  async () => {
    const { file, folder } = await buildGo("caller");
    const lines = await buildStep(file, [String(proxyPort)], { folder });
    expect(lines.trim().split("\n")).toEqual([
      "empty_unary",
      "large_unary",
      "client_streaming",
      "server_streaming",
      "ping_pong",
      "empty_stream",
      "timeout_on_sleeping_server",
      "cancel_after_begin",
      "cancel_after_first_response",
      "custom_metadata",
      "status_code_and_message",
      "special_status_message",
      "unimplemented_method",
      "unimplemented_service",
    ]);
  },
  buildLimitMs,
);

test(
  "none of 20,000 concurrent calls to a server with 100 streams on a connection fails",
  { timeout: buildLimitMs },
  async () => {
    await using limited = await startGrpcProgram({ ...(await buildGo("interop")), args: ["-streams", "100"] });
    await using transport = createGrpcTransport({ baseUrl: limited.address });
    const method = methodOf("EmptyCall");
    if (method.methodKind !== "unary") throw new Error("EmptyCall is no unary method");
    const calls = Array.from({ length: 20_000 }, () => transport.unary(method, undefined, undefined, undefined, {}));
    const outcomes = await within(Promise.allSettled(calls), "20,000 calls", 4 * waitLimitMs);
    expect(outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [String(outcome.reason)] : []))).toEqual([]);
  },
);

const ways: readonly { readonly way: string; readonly options: () => GrpcTransportOptions }[] = [
  { way: "straight", options: () => ({ baseUrl: server.address }) },
  { way: "through the proxy", options: () => ({ baseUrl: `http://127.0.0.1:${proxyPort}` }) },
  { way: "compressed", options: () => ({ baseUrl: server.address, sendCompression: "gzip", compressMinBytes: 0 }) },
  {
    way: "compressed, through the proxy",
    options: () => ({ baseUrl: `http://127.0.0.1:${proxyPort}`, sendCompression: "gzip", compressMinBytes: 0 }),
  },
];

describe.each(ways)("the transport, $way,", ({ options }) => {
  let transport: GrpcTransport;

  beforeAll(() => {
    transport = createGrpcTransport(options());
  });

  afterAll(() => transport[Symbol.asyncDispose]());

  const unary = async (name: string, request: JsonObject, call: CallOptions = {}): Promise<Answer> => {
    const method = methodOf(name);
    if (method.methodKind !== "unary") throw new Error(`${name} is no unary method`);
    const message = fromJson(method.input, request);
    const answer = await transport.unary(method, call.signal, call.timeoutMs, call.header, message);
    return { json: toJson(method.output, answer.message), header: answer.header, trailer: answer.trailer };
  };
  const stream = async (name: string, requests: Requests, call: CallOptions = {}): Promise<Answers> => {
    const method = methodOf(name);
    if (method.methodKind === "unary") throw new Error(`${name} is a unary method`);
    const messages = (async function* () {
      for await (const request of requests) yield fromJson(method.input, request);
    })();
    const answer: StreamResponse = await transport.stream(method, call.signal, call.timeoutMs, call.header, messages);
    return { header: answer.header, trailer: answer.trailer, messages: jsonOf(method, answer.message) };
  };

  test("empty_unary", async () => {
    expect((await unary("EmptyCall", {})).json).toEqual({});
  });

  test("large_unary", async () => {
    const { json } = await unary("UnaryCall", { responseSize: 314159, payload: zeros(271828) });
    expect(json).toEqual({ payload: zeros(314159) });
  });

  test("client_streaming", async () => {
    const requests = requestSizes.map((size) => ({ payload: zeros(size) }));
    const { messages } = await stream("StreamingInputCall", requests);
    expect(await collect(messages)).toEqual([{ aggregatedPayloadSize: 74922 }]);
  });

  test("server_streaming", async () => {
    const responseParameters = answerSizes.map((size) => ({ size }));
    const { messages } = await stream("StreamingOutputCall", [{ responseParameters }]);
    expect(await collect(messages)).toEqual(answerSizes.map((size) => ({ payload: zeros(size) })));
  });

  test("ping_pong", async () => {
    const answered = requestSizes.map(() => Promise.withResolvers<void>());
    // Each message is sent once the one before was answered.
    const requests = (async function* () {
      for (const [at, size] of requestSizes.entries()) {
        await answered[at - 1]?.promise;
        yield { responseParameters: [{ size: answerSizes[at] ?? 0 }], payload: zeros(size) };
      }
    })();
    const { messages } = await stream("FullDuplexCall", requests);
    const got: unknown[] = [];
    for await (const message of messages) {
      answered[got.length]?.resolve();
      got.push(message);
    }
    expect(got).toEqual(answerSizes.map((size) => ({ payload: zeros(size) })));
  });

  test("empty_stream", async () => {
    const { messages } = await stream("FullDuplexCall", []);
    expect(await collect(messages)).toEqual([]);
  });

  test("custom_metadata", async () => {
    const header = {
      "x-grpc-test-echo-initial": "test_initial_metadata_value",
      "x-grpc-test-echo-trailing-bin": "q6ur",
    };
    const called = await unary("UnaryCall", { responseSize: 1, payload: zeros(1) }, { header });
    const streamed = await stream("FullDuplexCall", [{ responseParameters: [{ size: 1 }], payload: zeros(1) }], {
      header,
    });
    await collect(streamed.messages);
    for (const answer of [called, streamed]) {
      expect(answer.header.get("x-grpc-test-echo-initial")).toBe("test_initial_metadata_value");
      expect(answer.trailer.get("x-grpc-test-echo-trailing-bin")).toBe("q6ur");
    }
  });

  test.each([
    { name: "status_code_and_message", message: "test status message" },
    { name: "special_status_message", message: "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n" },
  ])("$name", async ({ message }) => {
    const responseStatus = { code: 2, message };
    const failure = { code: Code.Unknown, rawMessage: message };
    await expect(unary("UnaryCall", { responseStatus })).rejects.toMatchObject(failure);
    const ended = stream("FullDuplexCall", [{ responseStatus }]).then(({ messages }) => collect(messages));
    await expect(ended).rejects.toMatchObject(failure);
  });

  test("unimplemented_method", async () => {
    await expect(unary("UnimplementedCall", {})).rejects.toMatchObject({ code: Code.Unimplemented });
  });

  test("cancel_after_begin", async () => {
    const leaving = new AbortController();
    const requests = waitFor(leaving.signal);
    const ended = stream("StreamingInputCall", requests, { signal: leaving.signal });
    leaving.abort();
    await expect(within(ended, "the end of the call")).rejects.toMatchObject({ code: Code.Canceled });
  });

  test("cancel_after_first_response", async () => {
    const leaving = new AbortController();
    const requests = (async function* () {
      yield { responseParameters: [{ size: 31415 }], payload: zeros(27182) };
      yield* waitFor(leaving.signal);
    })();
    const { messages } = await stream("FullDuplexCall", requests, { signal: leaving.signal });
    const iterator = messages[Symbol.asyncIterator]();
    expect((await iterator.next()).value).toEqual({ payload: zeros(31415) });
    leaving.abort();
    await expect(within(iterator.next(), "the end of the call")).rejects.toMatchObject({ code: Code.Canceled });
  });

  test("timeout_on_sleeping_server", async () => {
    const never = new AbortController();
    const ended = stream("FullDuplexCall", waitFor(never.signal), { timeoutMs: 1 });
    const read = ended.then(({ messages }) => collect(messages));
    await expect(within(read, "the end of the call")).rejects.toMatchObject({ code: Code.DeadlineExceeded });
    never.abort();
  });
});

type Requests = Iterable<JsonObject> | AsyncIterable<JsonObject>;

interface CallOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  readonly header?: Readonly<Record<string, string>>;
}

interface Answer {
  readonly json: unknown;
  readonly header: Headers;
  readonly trailer: Headers;
}

interface Answers {
  readonly header: Headers;
  readonly trailer: Headers;
  readonly messages: AsyncIterable<unknown>;
}

const requestSizes = [27182, 8, 1828, 45904];
const answerSizes = [31415, 9, 2653, 58979];

function zeros(size: number): { readonly body: string } {
  return { body: Buffer.alloc(size).toString("base64") };
}

function methodOf(name: string): DescMethodUnary | DescMethodStreaming {
  const method = methods.get(name);
  if (method === undefined) throw new Error(`there is no ${name}`);
  return method;
}

async function* jsonOf({ output }: DescMethod, messages: AsyncIterable<Message>): AsyncGenerator {
  for await (const message of messages) yield toJson(output, message);
}

/** Requests of which none comes, and whose end comes with a signal. */
async function* waitFor(signal: AbortSignal): AsyncGenerator<JsonObject> {
  await new Promise((resolve) => signal.addEventListener("abort", resolve));
  yield* [];
}
