import { type Client, Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { expect, test } from "vitest";
import { GreenhouseService, WaterBedRequestSchema } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { collect, within } from "@protoport/testing/process";
import { errorOf } from "../../../testing/src/gateway/call-end.ts";
import { descriptorSetOf, restrictedGreenhouse, startProxy, startScriptedServer } from "@protoport/testing/proxy";
import { encodeEnvelope, exchangeFetch, frameType, startGreenhouse, startKitchenSink } from "@protoport/testing";
import { createProxy } from "../../src/create-proxy.ts";
import { KitchenSink } from "../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";

/** Starts a proxy with an interceptor in front of a server that echoes messages. */
async function startIntercepted(interceptor: Interceptor) {
  const upstream = await startKitchenSink();
  const address = `http://127.0.0.1:${upstream.address.port}`;
  const proxy = await startProxy(address, [KitchenSink.file], { interceptors: [interceptor] });
  return {
    client: createClient(KitchenSink, createGrpcTransport({ baseUrl: proxy.baseUrl })),
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
    },
  };
}

test("interceptors get the bytes of each message in a separate buffer", async () => {
  const buffers: number[] = [];
  const read = (message: object): void => {
    if ("fBytes" in message && message.fBytes instanceof Uint8Array) buffers.push(message.fBytes.buffer.byteLength);
  };
  const interceptor: Interceptor = (next) => async (request) => {
    read(request.message);
    const response = await next(request);
    read(response.message);
    return response;
  };
  await using sink = await startIntercepted(interceptor);
  const fBytes = new Uint8Array(64).fill(7);
  expect((await sink.client.responseNested({ fBytes })).fBytes).toStrictEqual(fBytes);
  // The field takes 64 bytes, and its tag and length 2 bytes. A shared block would have 8 KiB.
  expect(buffers).toStrictEqual([66, 66]);
});

test("a response over 64 KiB passes through an interceptor", async () => {
  await using sink = await startIntercepted((next) => (request) => next(request));
  const fBytes = Buffer.alloc(1024 * 1024, 7);
  const response = await within(sink.client.responseNested({ fBytes }), "a response");
  expect(fBytes.equals(response.fBytes)).toBe(true);
});

test("an interceptor's abort signal resets the upstream's stream", async () => {
  const controller = new AbortController();
  const reset = Promise.withResolvers<Uint8Array>();
  await using upstream = await startScriptedServer({
    request: () => controller.abort(),
    frame: (_, { type, payload }) => void (type === frameType.resetStream && reset.resolve(payload)),
  });
  await using proxy = await startProxy(upstream.baseUrl, [KitchenSink.file], {
    interceptors: [(next) => (request) => next({ ...request, signal: controller.signal })],
  });
  const client = createClient(KitchenSink, createGrpcTransport({ baseUrl: proxy.baseUrl }));
  expect(await errorOf(client.responseNested({}))).toMatchObject({ code: Code.Canceled });
  expect(await within(reset.promise, "a reset")).toEqual(Buffer.of(0, 0, 0, 8));
});

function breakPump(): never {
  const detail = { desc: WaterBedRequestSchema, value: { bed: 7n, note: "secret" } };
  throw new ConnectError("the pump is broken", Code.Aborted, undefined, [detail]);
}

test.each<{ kind: string; call: (client: Client<typeof GreenhouseService>) => Promise<unknown> }>([
  { kind: "unary", call: (client) => client.waterBed({}) },
  { kind: "server-streaming", call: (client) => collect(client.watchReadings({})) },
])("interceptors of a $kind call get error details without hidden fields", async ({ call }) => {
  await using upstream = await startGreenhouse({ waterBed: breakPump, watchReadings: breakPump });
  const details: object[] = [];
  const recordDetails: Interceptor = (next) => async (request) => {
    const error = await errorOf(next(request).then(({ message }) => collect(Object(message))));
    // The details are read here, because the error is changed before it is sent.
    details.push(...error.findDetails(WaterBedRequestSchema));
    throw error;
  };
  await using proxy = await startProxy(`http://127.0.0.1:${upstream.address.port}`, [restrictedGreenhouse()], {
    visibility: { allow: [] },
    interceptors: [recordDetails],
  });
  const client = createClient(GreenhouseService, createGrpcTransport({ baseUrl: proxy.baseUrl }));
  expect((await errorOf(call(client))).code).toBe(Code.Aborted);
  expect(details).toMatchObject([{ bed: 7n, note: "" }]);
});

test("next() returns a rejected promise for a request that an interceptor created", async () => {
  let rejected: unknown;
  const interceptor: Interceptor = (next) => async (request) => {
    await next(Object.assign({ ...request }, { call: undefined })).catch((error: unknown) => {
      rejected = error;
    });
    return await next(request);
  };
  await using sink = await startIntercepted(interceptor);
  await sink.client.responseNested({});
  expect(rejected).toMatchObject({ rawMessage: expect.stringMatching(/must pass on the request that it received/) });
});

const throwAtNight: Interceptor = () => () => {
  throw new Error("closed at night");
};

test.each(["RecordReadings", "WatchReadings"])(
  "toError converts an error that an interceptor of %s throws synchronously",
  async (rpc) => {
    const proxy = await createProxy({
      upstreams: [{ upstream: "http://127.0.0.1:1", descriptors: descriptorSetOf(GreenhouseService.file) }],
      interceptors: [throwAtNight],
      toError: (thrown) => new ConnectError(Object(thrown).message, Code.FailedPrecondition),
    });
    const header = [["content-type", "application/connect+json"]] as const;
    const path = `/${GreenhouseService.typeName}/${rpc}`;
    const body = encodeEnvelope(0, Buffer.from("{}"));
    const response = await exchangeFetch(proxy.fetch, { httpMethod: "POST", path, header, body });
    expect(response.body.toString()).toContain('"code":"failed_precondition","message":"closed at night"');
    await proxy.close();
  },
);
