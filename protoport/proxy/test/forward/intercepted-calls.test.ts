// oxfmt-ignore
import { type Client, Code, ConnectError, createClient, type Interceptor, type HandlerContext
} from "@connectrpc/connect";
import { createGrpcTransport, createConnectTransport } from "@connectrpc/connect-node";
import { expect, test, describe } from "vitest";
import { GreenhouseService, WaterBedRequestSchema } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { collect, within } from "@protoport/testing/process";
// oxfmt-ignore
import { descriptorSetOf, errorOf, KitchenSink, restrictedGreenhouse, startProxy, startScriptedServer
} from "@protoport/testing/proxy";
import { encodeEnvelope, exchangeFetch, frameType, startKitchenSink } from "@protoport/testing";
import { createProxy } from "../../src/create-proxy.ts";
import { startProxied } from "../support/greenhouses.ts";

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
  const details: object[] = [];
  const recordDetails: Interceptor = (next) => async (request) => {
    const error = await errorOf(next(request).then(({ message }) => collect(Object(message))));
    // The details are read here, because the error is changed before it is sent.
    details.push(...error.findDetails(WaterBedRequestSchema));
    throw error;
  };
  const options = { visibility: { allow: [] }, interceptors: [recordDetails] };
  const broken = { waterBed: breakPump, watchReadings: breakPump };
  await using proxy = await startProxied(broken, options, [restrictedGreenhouse()]);
  const client = createClient(GreenhouseService, createGrpcTransport({ baseUrl: proxy.baseUrl }));
  expect([(await errorOf(call(client))).code, details]).toMatchObject([Code.Aborted, [{ bed: 7n, note: "" }]]);
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

// An interceptor that calls `next` again: the response has the metadata of one attempt.

type Next = Parameters<Interceptor>[0];

const protocols = [
  { name: "gRPC", transport: (baseUrl: string) => createGrpcTransport({ baseUrl }) },
  {
    name: "Connect with JSON",
    transport: (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: "2", useBinaryFormat: false }),
  },
];

/** Starts a proxy whose upstream numbers its calls, and fails those in `failing`. */
async function startNumbered(failing: readonly number[], interceptor: Interceptor) {
  let calls = 0;
  const number = ({ responseHeader, responseTrailer }: HandlerContext): number => {
    calls += 1;
    responseHeader.append("x-attempt", String(calls));
    responseTrailer.append("x-trailer", String(calls));
    return calls;
  };
  const failIf = (attempt: number): void => {
    if (failing.includes(attempt)) throw new ConnectError(`attempt ${attempt}`, Code.Aborted);
  };
  const implementation: Parameters<typeof startProxied>[0] = {
    waterBed: (_, context) => {
      const attempt = number(context);
      failIf(attempt);
      return { note: `attempt ${attempt}` };
    },
    watchReadings: async function* (_, context) {
      const attempt = number(context);
      yield { sensor: `attempt ${attempt}` };
      failIf(attempt);
    },
  };
  return await startProxied(implementation, { interceptors: [interceptor] });
}

async function* yieldAll<Item>(items: readonly Item[]): AsyncGenerator<Item> {
  yield* items;
}

interface Row {
  readonly name: string;
  readonly failing: readonly number[];
  readonly run: (call: () => ReturnType<Next>) => ReturnType<Next>;
  readonly attempt: number;
}

// oxfmt-ignore
const rows: readonly Row[] = [
  { name: "the second response", failing: [], run: (call) => call().then(call), attempt: 2 },
  { name: "the first response after the second", failing: [], run: async (call) => {
      const first = await call();
      await call();
      return first;
    }, attempt: 1 },
  { name: "the first of two concurrent responses", failing: [],
    run: (call) => Promise.all([call(), call()]).then(([first]) => first), attempt: 1 },
  { name: "the second of two concurrent responses", failing: [],
    run: (call) => Promise.all([call(), call()]).then(([, second]) => second), attempt: 2 },
  { name: "a retry after an error", failing: [1], run: (call) => call().catch(call), attempt: 2 },
  { name: "a third attempt", failing: [1, 2], run: (call) => call().catch(call).catch(call), attempt: 3 },
  { name: "the error of the second attempt", failing: [1, 2], run: (call) => call().catch(call), attempt: 2 },
  { name: "the error of the first attempt after the second", failing: [1], run: (call) =>
      call().catch(async (error: unknown) => {
        await call();
        throw error;
      }), attempt: 1 },
  { name: "an error after a response", failing: [2], run: (call) => call().then(call), attempt: 2 },
];

async function metadataOf(call: (options: object) => Promise<unknown>): Promise<(string | null | undefined)[]> {
  let header: Headers | undefined;
  let trailer: Headers | undefined;
  const onHeader = (received: Headers): void => void (header = received);
  const onTrailer = (received: Headers): void => void (trailer = received);
  try {
    await call({ onHeader, onTrailer });
  } catch (error) {
    const { metadata, rawMessage } = ConnectError.from(error);
    return [
      rawMessage,
      (header?.has("x-attempt") === true ? header : metadata).get("x-attempt"),
      metadata.get("x-trailer"),
    ];
  }
  return [header?.get("x-attempt"), trailer?.get("x-trailer")];
}

describe.each(protocols)("over $name", ({ transport }) => {
  test.each(rows)("a unary call with $name has that attempt's metadata", async ({ failing, run, attempt }) => {
    await using numbered = await startNumbered(failing, (next) => (request) => run(() => next(request)));
    const client = createClient(GreenhouseService, transport(numbered.baseUrl));
    const messages: string[] = [];
    const received = await metadataOf(async (options) => {
      messages.push((await client.waterBed({}, options)).note);
    });
    const metadata = [String(attempt), String(attempt)];
    if (failing.includes(attempt)) expect(received).toEqual([`attempt ${attempt}`, ...metadata]);
    else expect([messages, received]).toEqual([[`attempt ${attempt}`], metadata]);
  });

  test.each([
    { name: "a retried stream", failing: [1], attempt: 2 },
    { name: "a stream whose retry fails", failing: [1, 2], attempt: 2 },
  ])("$name has the metadata of its last attempt", async ({ failing, attempt }) => {
    const interceptor: Interceptor = (next) => async (request) => {
      if (!request.stream) return await next(request);
      // A stream of requests can be read once.
      const requests = await collect(request.message);
      const send = (): ReturnType<Next> => next({ ...request, message: yieldAll(requests) });
      const first = await send();
      if (first.stream) await collect(first.message).catch(() => undefined);
      return await send();
    };
    await using numbered = await startNumbered(failing, interceptor);
    const client = createClient(GreenhouseService, transport(numbered.baseUrl));
    const received = await metadataOf((options) => collect(client.watchReadings({}, options)));
    const metadata = [String(attempt), String(attempt)];
    expect(received).toEqual(failing.includes(attempt) ? [`attempt ${attempt}`, ...metadata] : metadata);
  });
});
