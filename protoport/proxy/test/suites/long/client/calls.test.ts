import { AsyncLocalStorage } from "node:async_hooks";
import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { Server as GrpcServer, ServerCredentials, type ServerDuplexStream } from "@grpc/grpc-js";
import type { CallOptions, Interceptor } from "@connectrpc/connect";
import { Code, ConnectError, createClient, createContextKey, createContextValues } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { ReadingSchema } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGrpcTransport, type GrpcTransportOptions } from "../../../../src/client/index.ts";
import type { ListenOptions } from "../../../../../gateway/src/index.ts";
import { GreenhouseService, descriptorSetOf, respondWatered, startScriptedServer } from "@protoport/testing/proxy";
import { StreamService } from "../../../../../testing/src/gen/streams/v1/stream_service_pb.ts";
import { createTestGateway, createCertificate, frameType, startGreenhouse, within } from "@protoport/testing";
import { recordGeneratedFunctions } from "../../../../../testing/src/gateway/generated-functions.ts";

const requests: { header: Headers; timeoutMs: number | undefined }[] = [];

async function startServer(listen: ListenOptions): Promise<AsyncDisposable & { readonly port: number }> {
  const gateway = createTestGateway({
    routes: (router) => {
      router.service(GreenhouseService, {
        waterBed: (request, context) => {
          requests.push({ header: context.requestHeader, timeoutMs: context.timeoutMs() });
          context.responseHeader.set("x-head", "1");
          context.responseTrailer.set("x-tail", "2");
          const details = [{ desc: ReadingSchema, value: { sensor: "4" } }];
          if (request.bed < 0n) throw new ConnectError("no such bed", Code.NotFound, { "x-why": "3" }, details);
          return { bed: request.bed, note: request.note };
        },
        watchReadings: async function* ({ count }, context) {
          context.responseHeader.set("x-head", "1");
          context.responseTrailer.set("x-tail", "2");
          for (let i = 0; i < count; i++) yield await Promise.resolve({ sensor: String(i) });
        },
        recordReadings: async (readings) => {
          let count = 0;
          for await (const _ of readings) count++;
          return { count };
        },
        controlClimate: async function* (readings) {
          for await (const { sensor } of readings) yield { sensor };
        },
      });
      router.service(StreamService, { echo: (pieces) => pieces });
    },
    onFault: () => undefined,
  });
  const { port } = await gateway.listen(listen);
  return { port, [Symbol.asyncDispose]: () => gateway.close() };
}

const certificate = createCertificate("server");
const clientCertificate = createCertificate("client");
const socketPath = join(tmpdir(), `client-calls-${process.pid}.sock`);
const host = "127.0.0.1";

// oxfmt-ignore
const connections: readonly {
  readonly name: string;
  readonly listen: ListenOptions;
  readonly options: (port: number) => GrpcTransportOptions;
}[] = [
  { name: "without TLS", listen: { host, port: 0 }, options: (port) => ({ baseUrl: `http://${host}:${port}` }) },
  { name: "with mutual TLS",
    listen: { host, port: 0, tls: { ...certificate, ca: clientCertificate.cert, requestCert: true,
      rejectUnauthorized: true } },
    options: (port) => ({ baseUrl: `https://localhost:${port}`,
      tls: { ca: certificate.cert, ...clientCertificate } }) },
  { name: "over a Unix socket", listen: { path: socketPath }, options: () => ({ baseUrl: `unix:${socketPath}` }) },
  { name: "with gzip", listen: { host, port: 0 },
    options: (port) => ({ baseUrl: `http://${host}:${port}`, sendCompression: "gzip", compressMinBytes: 0 }) },
  { name: "with an interceptor", listen: { host, port: 0 },
    options: (port) => ({ baseUrl: `http://${host}:${port}`, interceptors: [(next) => (request) => next(request)] }) },
];

test.each(connections)("$name, unary and streaming calls succeed", async (connection) => {
  await using server = await startServer(connection.listen);
  await using transport = createGrpcTransport(connection.options(server.port));
  const client = createClient(GreenhouseService, transport);
  const note = "n".repeat(300_000);
  expect(await client.waterBed({ bed: 7n, note })).toMatchObject({ bed: 7n, note });
  const watched: (string | null)[] = [];
  const options: CallOptions = {
    onHeader: (header) => watched.push(header.get("x-head")),
    onTrailer: (trailer) => watched.push(trailer.get("x-tail")),
  };
  for await (const { sensor } of client.watchReadings({ count: 1000 }, options)) watched.push(sensor);
  expect(watched).toEqual(["1", ...Array.from({ length: 1000 }, (_, i) => String(i)), "2"]);
  expect((await client.recordReadings(readingsOf500())).count).toBe(500);
  const echoed: string[] = [];
  for await (const { sensor } of client.controlClimate(readingsOf500())) echoed.push(sensor);
  expect(echoed).toHaveLength(500);
  rmSync(socketPath, { force: true });
});

test("metadata is sent in both directions, and errors are complete", async () => {
  await using server = await startServer({ host, port: 0 });
  await using transport = createGrpcTransport({ baseUrl: `http://${host}:${server.port}` });
  const client = createClient(GreenhouseService, transport);
  const received: (string | null)[] = [];
  const dropped = { "grpc-timeout": "1n", te: "gzip", connection: "close" };
  const headers = { authorization: "Bearer x", "x-a": "1", "user-agent": "tests", ...dropped };
  const onHeader = (fields: Headers) => received.push(fields.get("x-head"));
  const onTrailer = (fields: Headers) => received.push(fields.get("x-tail"));
  await client.waterBed({}, { headers, timeoutMs: 5000, onHeader, onTrailer });
  expect(received).toEqual(["1", "2"]);
  const { header, timeoutMs } = requests.at(-1) ?? {};
  const names = ["authorization", "x-a", "user-agent", "te", "grpc-accept-encoding"];
  expect(names.map((name) => header?.get(name))).toEqual(["Bearer x", "1", "tests", "trailers", "gzip,br,zstd"]);
  expect(timeoutMs).toBeGreaterThan(1000);
  const call = client.waterBed({ bed: -1n }, { headers: { "x-a": "2" } });
  const error = await call.catch((reason: unknown) => ConnectError.from(reason));
  expect(requests.at(-1)?.header.get("user-agent")).toBe("grpc-node-protoport");
  expect(error).toMatchObject({ code: Code.NotFound, rawMessage: "no such bed" });
  expect(error instanceof ConnectError && error.metadata.get("x-why")).toBe("3");
  expect(error instanceof ConnectError && error.findDetails(ReadingSchema)).toMatchObject([{ sensor: "4" }]);
});

test.each([
  { bytes: 1023, flags: 0, options: {} },
  { bytes: 1024, flags: 1, options: {} },
  { bytes: 1024, flags: 0, options: { compressMinBytes: 1025 } },
])("with sendCompression and $options, a message of $bytes bytes has the envelope flags $flags", async (row) => {
  let sent: number | undefined;
  await using server = await startScriptedServer({
    ...respondWatered,
    frame: (_, { type, payload }) => {
      if (type === frameType.data) sent ??= payload[0];
    },
  });
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl, sendCompression: "gzip", ...row.options });
  // A tag and a two-byte length precede the string.
  await createClient(GreenhouseService, transport).waterBed({ note: "n".repeat(row.bytes - 3) });
  expect(sent).toBe(row.flags);
});

const generated = recordGeneratedFunctions();

test.each([true, false])("with codegen %s, a transport generates functions or does not", async (codegen) => {
  await using server = await startScriptedServer(respondWatered);
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl, codegen });
  // Generated functions are cached per descriptor, so each transport gets new ones.
  const files = createFileRegistry(fromBinary(FileDescriptorSetSchema, descriptorSetOf(GreenhouseService.file)));
  const service = files.getService(GreenhouseService.typeName);
  if (service === undefined) throw new Error("the descriptors do not contain the service");
  generated.length = 0;
  const client = createClient(service, transport);
  await Reflect.apply(Reflect.get(client, "waterBed"), client, [{}]);
  expect(generated.length > 0).toBe(codegen);
});

test("interceptors run in order, and can change the request", async () => {
  await using server = await startServer({ host, port: 0 });
  const order: string[] = [];
  const key = createContextKey("none");
  const options = { contextValues: createContextValues().set(key, "values") };
  const recording =
    (name: string): Interceptor =>
    (next) =>
    async (request) => {
      expect(request.contextValues.get(key)).toBe("values");
      order.push(name);
      request.header.append("x-by", name);
      const response = await next(request);
      order.push(`${name} after`);
      return response;
    };
  const interceptors = [recording("first"), recording("second")];
  await using transport = createGrpcTransport({ baseUrl: `http://${host}:${server.port}`, interceptors });
  const client = createClient(GreenhouseService, transport);
  const expectedOrder = ["first", "second", "second after", "first after"];
  await client.waterBed({}, options);
  expect([order, requests.at(-1)?.header.get("x-by")?.split(", ")]).toEqual([expectedOrder, ["first", "second"]]);
  await client.recordReadings(readingsOf500(), options);
  expect(order).toEqual([...expectedOrder, ...expectedOrder]);
});

test("messages over the size limit are rejected in both directions", async () => {
  await using server = await startServer({ host, port: 0 });
  const baseUrl = `http://${host}:${server.port}`;
  await using transport = createGrpcTransport({ baseUrl, readMaxBytes: 1000, writeMaxBytes: 5000 });
  const client = createClient(GreenhouseService, transport);
  const before = requests.length;
  await expect(client.waterBed({ note: "n".repeat(6000) })).rejects.toMatchObject({ code: Code.ResourceExhausted });
  expect(requests.length).toBe(before);
  await expect(client.waterBed({ note: "n".repeat(3000) })).rejects.toMatchObject({ code: Code.ResourceExhausted });
  expect(await client.waterBed({ note: "n" })).toMatchObject({ note: "n" });
});

test("the request stream is read and closed in the caller's async context", async () => {
  await using greenhouse = await startGreenhouse({});
  const { address, port } = greenhouse.address;
  await using transport = createGrpcTransport({ baseUrl: `http://${address}:${port}` });
  const storage = new AsyncLocalStorage<string>();
  const contexts: (readonly [call: string, store: string | undefined])[] = [];
  async function* readings(name: string): AsyncGenerator<{ sensor: string }> {
    try {
      contexts.push([name, storage.getStore()]);
      // Larger than the window, so that the server fails the call before the message is sent completely.
      yield { sensor: "x".repeat(1_000_000) };
    } finally {
      contexts.push([name, storage.getStore()]);
    }
  }
  const { recordReadings } = createClient(GreenhouseService, transport);
  await Promise.allSettled(["a", "b"].map((name) => storage.run(name, () => recordReadings(readings(name)))));
  expect([contexts.length, contexts.filter(([name, store]) => store !== name)]).toEqual([4, []]);
});

test("a disposed transport rejects new calls, and finishes calls in flight", async () => {
  await using server = await startServer({ host, port: 0 });
  const transport = createGrpcTransport({ baseUrl: `http://${host}:${server.port}` });
  const client = createClient(GreenhouseService, transport);
  await client.waterBed({});
  const call = client.waterBed({ bed: 5n });
  await Promise.resolve();
  await within(Promise.all([transport[Symbol.asyncDispose](), call]), "the end");
  expect((await call).bed).toBe(5n);
  await expect(client.waterBed({})).rejects.toMatchObject({ code: Code.Unavailable });
});

// Delays each call by more than 1 ms, because a node timer above 2^31-1 ms fires after 1 ms.
const delay: Interceptor = (next) => async (request) => {
  await pause(20);
  return await next(request);
};

test.each([
  { name: "without interceptors", interceptors: [] },
  { name: "with an interceptor that delays the call", interceptors: [delay] },
])("$name, a 25-day timeout does not expire immediately", async ({ interceptors }) => {
  await using server = await startServer({ host, port: 0 });
  await using transport = createGrpcTransport({ baseUrl: `http://${host}:${server.port}`, interceptors });
  expect((await createClient(GreenhouseService, transport).waterBed({ bed: 5n }, { timeoutMs: 2 ** 31 })).bed).toBe(5n);
  expect(requests.at(-1)?.timeoutMs).toBeGreaterThan(2 ** 30);
});

const waitForAbort: Interceptor = (next) => async (request) => {
  await new Promise((resolve) => request.signal.addEventListener("abort", resolve));
  return await next(request);
};

test("a call fails at its deadline while an interceptor waits", async () => {
  await using transport = createGrpcTransport({ baseUrl: "http://x", interceptors: [waitForAbort] });
  const call = createClient(GreenhouseService, transport).waterBed({}, { timeoutMs: 1 });
  await expect(within(call, "the end of the call")).rejects.toMatchObject({ code: Code.DeadlineExceeded });
});

test("createGrpcTransport accepts the minimum of each option", () => {
  const least = { compressMinBytes: 0, readMaxBytes: 1, writeMaxBytes: 1, defaultTimeoutMs: 0, keepaliveMs: 1 };
  expect(createGrpcTransport({ baseUrl: "http://x", connections: 1, ...least })).toBeDefined();
});

test.each([
  ...["ftp://x", "http://x/path", "x:1", "http://x?a=b", "http://x#a", "http://u@x", "http://:p@x"].map((baseUrl) => ({
    options: { baseUrl },
    error: TypeError,
  })),
  { options: JSON.parse('{"baseUrl":"http://x","sendCompression":"deflate"}'), error: TypeError },
  { options: { baseUrl: "http://x", connections: 1_001 }, error: RangeError },
  { options: { baseUrl: "http://x", keepaliveMs: 0 }, error: RangeError },
  { options: { baseUrl: "http://x", readMaxBytes: 0 }, error: RangeError },
  { options: { baseUrl: "http://x", writeMaxBytes: 0 }, error: RangeError },
  { options: { baseUrl: "http://x", compressMinBytes: -1 }, error: RangeError },
  ...[Number.NaN, -1, Number.POSITIVE_INFINITY].map((defaultTimeoutMs) => ({
    options: { baseUrl: "http://x", defaultTimeoutMs },
    error: RangeError,
  })),
  { options: { baseUrl: "https://x", tls: { cert: "none", key: "none" } }, error: Error },
])("createGrpcTransport rejects the options $options with an error", ({ options, error }) => {
  expect(() => createGrpcTransport(options)).toThrow(error);
});

test("a bidirectional stream from grpc-js yields messages, then the error", async () => {
  const server = new GrpcServer();
  const serializers = { requestSerialize: same, responseSerialize: same };
  const identity = { ...serializers, requestDeserialize: same, responseDeserialize: same };
  server.addService(
    { echo: { path: "/streams.v1.StreamService/Echo", requestStream: true, responseStream: true, ...identity } },
    {
      echo: (call: ServerDuplexStream<Buffer, Buffer>) => {
        call.on("data", (piece: Buffer) => {
          if (piece.byteLength > 0) call.write(piece);
          else call.emit("error", { code: 9, details: "half % way" });
        });
        call.on("end", () => call.end());
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync(`${host}:0`, ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  try {
    await using transport = createGrpcTransport({ baseUrl: `http://${host}:${port}` });
    const client = createClient(StreamService, transport);
    const numbers: number[] = [];
    for await (const { number } of client.echo(piecesOf([1, 2, 3]))) numbers.push(number);
    expect(numbers).toEqual([1, 2, 3]);
    const failing = async (): Promise<void> => {
      for await (const { number } of client.echo(piecesOf([4, 0]))) numbers.push(number);
    };
    await expect(failing()).rejects.toMatchObject({ code: Code.FailedPrecondition, rawMessage: "half % way" });
    expect(numbers).toEqual([1, 2, 3, 4]);
  } finally {
    server.forceShutdown();
  }
});

const same = (bytes: Buffer): Buffer => bytes;

async function* readingsOf500(): AsyncGenerator<{ sensor: string }> {
  // More bytes than the window, so that the client must send WINDOW_UPDATE.
  for (let i = 0; i < 500; i++) yield await Promise.resolve({ sensor: String(i).padEnd(1_000) });
}

async function* piecesOf(numbers: readonly number[]): AsyncGenerator<{ number: number }> {
  for (const number of numbers) yield await Promise.resolve({ number });
}
