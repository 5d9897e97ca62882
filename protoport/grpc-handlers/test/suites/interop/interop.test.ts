import { once } from "node:events";
import { Client, credentials, Metadata, Server, ServerCredentials, status } from "@grpc/grpc-js";
import type { ClientDuplexStream, MethodDefinition, ServiceError, StatusObject } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildGo } from "../../../../testing/src/gateway/grpc-programs.ts";
import { buildLimitMs, buildStep, createTestGateway, listenForTests } from "@protoport/testing";
import { addGrpcJsService } from "../../../src/grpc-js.ts";
import { testHandlers, testService, unimplementedService } from "./test-service.ts";
import type { Response, StreamRequest, UnaryRequest } from "./test-service.ts";

// gRPC's interop test descriptions (grpc/grpc, doc/interop-test-descriptions.md) with grpc-js handlers, on grpc-js's
// server and on a gateway. The clients use grpc-js and grpc-go. Excludes the cases about compression and credentials.
// grpc-js handlers do not see whether a message was compressed, and the gateway verifies no credentials.

interface TestServer extends AsyncDisposable {
  readonly port: number;
}

const servers: Readonly<Record<"grpc-js" | "gateway", () => Promise<TestServer>>> = {
  async "grpc-js"() {
    const server = new Server();
    server.addService(testService, testHandlers);
    const bound = Promise.withResolvers<number>();
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) =>
      error === null ? bound.resolve(port) : bound.reject(error),
    );
    return { port: await bound.promise, [Symbol.asyncDispose]: async () => server.forceShutdown() };
  },
  async gateway() {
    const gateway = createTestGateway({ routes: (router) => void addGrpcJsService(router, testService, testHandlers) });
    const { address, ...listening } = await listenForTests(gateway);
    return { port: address.port, [Symbol.asyncDispose]: () => listening[Symbol.asyncDispose]() };
  },
};

const requestSizes = [27182, 8, 1828, 45904];
const responseSizes = [31415, 9, 2653, 58979];
const zeros = (size: number): { readonly body: Uint8Array } => ({ body: Buffer.alloc(size) });
const sizeOf = ({ payload }: Response): number => payload?.body?.byteLength ?? 0;
const initialKey = "x-grpc-test-echo-initial";
const trailingKey = "x-grpc-test-echo-trailing-bin";
const echoed = new Metadata();
echoed.set(initialKey, "test_initial_metadata_value");
echoed.set(trailingKey, Buffer.from([0xab, 0xab, 0xab]));

const { UnaryCall, StreamingOutputCall, StreamingInputCall, FullDuplexCall } = testService;
type UnaryOutcome<R> = { response: R | undefined; error: ServiceError | null; header: Metadata; status: StatusObject };

async function unary<Q, R>(
  client: Client,
  { path, requestSerialize, responseDeserialize }: MethodDefinition<Q, R>,
  request: Q,
  metadata = new Metadata(),
): Promise<UnaryOutcome<R>> {
  const responded = Promise.withResolvers<Pick<UnaryOutcome<R>, "response" | "error">>();
  const call = client.makeUnaryRequest(
    path,
    requestSerialize,
    responseDeserialize,
    request,
    metadata,
    (error, response) => responded.resolve({ error, response }),
  );
  const ended = Promise.withResolvers<StatusObject>();
  call.on("status", ended.resolve);
  let header = new Metadata();
  call.on("metadata", (received: Metadata) => (header = received));
  return { ...(await responded.promise), status: await ended.promise, header };
}

function duplex(
  client: Client,
  metadata = new Metadata(),
  options: { readonly deadline?: number } = {},
): ClientDuplexStream<StreamRequest, Response> {
  const { path, requestSerialize, responseDeserialize } = FullDuplexCall;
  return client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, metadata, options);
}

async function collect(
  call: ClientDuplexStream<StreamRequest, Response>,
  onMessage: (count: number) => void = () => {},
): Promise<{ readonly sizes: readonly number[]; readonly status: StatusObject; readonly header: Metadata }> {
  const sizes: number[] = [];
  let header = new Metadata();
  const ended = Promise.withResolvers<StatusObject>();
  call.on("metadata", (received: Metadata) => (header = received));
  call.on("data", (message: Response) => {
    sizes.push(sizeOf(message));
    onMessage(sizes.length);
  });
  // The status has the same error.
  call.on("error", () => {});
  call.on("status", ended.resolve);
  return { status: await ended.promise, sizes, header };
}

const specialMessage = "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n";

const cases: Readonly<Record<string, (client: Client) => Promise<void>>> = {
  async empty_unary(client) {
    expect(await unary(client, testService.EmptyCall, {})).toMatchObject({ error: null, response: {} });
  },
  async large_unary(client) {
    const request: UnaryRequest = { responseSize: 314159, payload: zeros(271828) };
    const { response = {} } = await unary(client, UnaryCall, request);
    expect(sizeOf(response)).toBe(314159);
  },
  async client_streaming(client) {
    const { path, requestSerialize, responseDeserialize } = StreamingInputCall;
    const responded = Promise.withResolvers<unknown>();
    const call = client.makeClientStreamRequest(path, requestSerialize, responseDeserialize, (error, response) =>
      responded.resolve(error ?? response),
    );
    for (const size of requestSizes) call.write({ payload: zeros(size) });
    call.end();
    expect(await responded.promise).toEqual({ aggregatedPayloadSize: 74922 });
  },
  async server_streaming(client) {
    const { path, requestSerialize, responseDeserialize } = StreamingOutputCall;
    const request = { responseParameters: responseSizes.map((size) => ({ size })) };
    const call = client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, request);
    const sizes: number[] = [];
    call.on("data", (message: Response) => sizes.push(sizeOf(message)));
    await once(call, "end");
    expect(sizes).toEqual(responseSizes);
  },
  async ping_pong(client) {
    const call = duplex(client);
    const send = (at: number): void => {
      const [size, payloadSize] = [responseSizes[at], requestSizes[at]];
      if (size === undefined || payloadSize === undefined) return void call.end();
      call.write({ responseParameters: [{ size }], payload: zeros(payloadSize) });
    };
    const ended = collect(call, send);
    send(0);
    expect(await ended).toMatchObject({ sizes: responseSizes, status: { code: status.OK } });
  },
  async empty_stream(client) {
    const call = duplex(client);
    call.end();
    expect(await collect(call)).toMatchObject({ sizes: [], status: { code: status.OK } });
  },
  async custom_metadata(client) {
    const called = await unary(client, UnaryCall, { responseSize: 1, payload: zeros(1) }, echoed);
    const call = duplex(client, echoed);
    call.write({ responseParameters: [{ size: 1 }], payload: zeros(1) });
    call.end();
    for (const outcome of [called, await collect(call)]) {
      expect(outcome.header.get(initialKey)).toEqual(echoed.get(initialKey));
      expect(outcome.status.metadata.get(trailingKey)).toEqual(echoed.get(trailingKey));
    }
  },
  status_code_and_message: (client) => expectStatus(client, "test status message"),
  special_status_message: (client) => expectStatus(client, specialMessage),
  async unimplemented_method(client) {
    const { error } = await unary(client, testService.UnimplementedCall, {});
    expect(error?.code).toBe(status.UNIMPLEMENTED);
  },
  async unimplemented_service(client) {
    const { error } = await unary(client, unimplementedService.UnimplementedCall, {});
    expect(error?.code).toBe(status.UNIMPLEMENTED);
  },
  async cancel_after_begin(client) {
    const { path, requestSerialize, responseDeserialize } = StreamingInputCall;
    const responded = Promise.withResolvers<ServiceError | null>();
    client.makeClientStreamRequest(path, requestSerialize, responseDeserialize, responded.resolve).cancel();
    expect((await responded.promise)?.code).toBe(status.CANCELLED);
  },
  async cancel_after_first_response(client) {
    const call = duplex(client);
    const ended = collect(call, () => call.cancel());
    call.write({ responseParameters: [{ size: 31415 }], payload: zeros(27182) });
    expect(await ended).toMatchObject({ sizes: [31415], status: { code: status.CANCELLED } });
  },
  async timeout_on_sleeping_server(client) {
    const call = duplex(client, new Metadata(), { deadline: Date.now() + 1 });
    call.write({ payload: zeros(27182) });
    expect((await collect(call)).status.code).toBe(status.DEADLINE_EXCEEDED);
  },
};

async function expectStatus(client: Client, message: string): Promise<void> {
  const responseStatus = { code: status.UNKNOWN, message };
  const { error } = await unary(client, UnaryCall, { responseStatus });
  const call = duplex(client);
  call.write({ responseStatus });
  call.end();
  const { status: ended } = await collect(call);
  const failed = { code: status.UNKNOWN, details: message };
  expect([error, ended]).toMatchObject([failed, failed]);
}

describe.each(["grpc-js", "gateway"] as const)("grpc-js handlers on the %s server", (name) => {
  let server: TestServer;
  let client: Client;
  beforeAll(async () => {
    server = await servers[name]();
    client = new Client(`127.0.0.1:${server.port}`, credentials.createInsecure());
  });
  afterAll(async () => {
    client.close();
    await server[Symbol.asyncDispose]();
  });

  test.each(Object.entries(cases))("pass the interop case %s with a grpc-js client", async (_name, run) => run(client));

  test(
    "pass all interop cases of the grpc-go client",
    async () => {
      const { file, folder } = await buildGo("caller");
      const lines = await buildStep(file, [String(server.port)], { folder });
      expect(lines.trim().split("\n").toSorted()).toEqual(Object.keys(cases).toSorted());
    },
    buildLimitMs,
  );
});
