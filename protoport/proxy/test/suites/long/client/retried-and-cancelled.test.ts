import { create, toBinary } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError, createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { RecordReadingsResponseSchema } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGrpcTransport, createUpstream, type UpstreamOptions } from "../../../../src/client/index.ts";
import { dataFrame, type Frame, frame, frameFlag, frameType, headersFrame, resetFrame } from "@protoport/testing/http";
import { createTempFolder, projectFolder, runProgram, waitSomeTurns, within } from "@protoport/testing/process";
// oxfmt-ignore
import { envelope, GreenhouseService, grpcHead, grpcResponse, ReadingSchema, respondWatered, type ScriptedConnection,
  settingFrame, startScriptedServer, watered } from "@protoport/testing/proxy";
import { collect, startGreenhouse } from "@protoport/testing";

const readingOf = (sensor: string): Buffer =>
  envelope(toBinary(ReadingSchema, { $typeName: "greenhouse.v1.Reading", sensor, degreesCelsius: 0 }));
const maxStreams = 3;
const backoff = { initialBackoffMs: 1, maxBackoffMs: 1, backoffMultiplier: 1 };
const retry = { ...backoff, maxAttempts: 2, retryableCodes: [Code.Unavailable] };
const unavailable = [...grpcHead, ["grpc-status", "14"]] as const;
const failures = [
  { how: "a refusal", failFrame: (id: number) => resetFrame(id, 7) },
  { how: "a retryable error", failFrame: (id: number) => headersFrame(id, unavailable, frameFlag.endStream) },
];

/** A message larger than the bytes kept for a retry, and windows large enough for it. */
const large = "x".repeat(100_000);
const windowsForLarge = [settingFrame(4, 1_000_000), frame(frameType.windowUpdate, 0, 0, Buffer.of(0, 16, 0, 0))];

test.each(failures)("a stream retried after $how sends all its messages again", async ({ failFrame }) => {
  const refused = Promise.withResolvers<ScriptedConnection>();
  const bodies = new Map<number, Buffer>();
  let acknowledged = 0;
  await using server = await startScriptedServer({
    opening: windowsForLarge,
    frame: (connection, { type, flags, streamId, payload }) => {
      if (type === frameType.settings && flags === 1 && ++acknowledged === 2) refused.resolve(connection);
      if (type !== frameType.data) return;
      // Fails the stream at the first message, and allows no new streams for a while.
      if (bodies.size === 0) connection.send(settingFrame(maxStreams, 0), failFrame(streamId));
      bodies.set(streamId, Buffer.concat([bodies.get(streamId) ?? Buffer.alloc(0), payload]));
    },
    request: (connection, id) => {
      const response = { $typeName: "greenhouse.v1.RecordReadingsResponse", count: 3, meanDegreesCelsius: 0 } as const;
      connection.send(...grpcResponse(id, envelope(toBinary(RecordReadingsResponseSchema, response))));
    },
  });
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl, retry });
  async function* input(): AsyncGenerator<{ sensor: string }> {
    yield { sensor: "first" };
    const connection = await refused.promise;
    // By now, the call has read the large message.
    setImmediate(() => connection.send(settingFrame(maxStreams, 100)));
    yield { sensor: large };
    yield { sensor: "last" };
  }
  await within(createClient(GreenhouseService, transport).recordReadings(input()), "the call");
  const allMessages = Buffer.concat([readingOf("first"), readingOf(large), readingOf("last")]);
  const sizes = [readingOf("first"), allMessages].map((body) => body.byteLength);
  expect([...bodies.values()].map((body) => body.byteLength)).toEqual(sizes);
  expect([...bodies.values()].at(-1)?.equals(allMessages)).toBe(true);
});

test("the request stream is not read while the window is full", async () => {
  const responder = Promise.withResolvers<() => void>();
  let receivedBytes = 0;
  await using server = await startScriptedServer({
    frame: (connection, { type, streamId, payload }) => {
      if (type !== frameType.data) return;
      receivedBytes += payload.byteLength;
      // The window is full, and the server sends no WINDOW_UPDATE.
      const response = envelope(toBinary(RecordReadingsResponseSchema, create(RecordReadingsResponseSchema)));
      if (receivedBytes === 65_535)
        responder.resolve(() => connection.send(...grpcResponse(streamId, response), resetFrame(streamId, 0)));
    },
  });
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl });
  let reads = 0;
  const next = async () => {
    // Limited, so that the test ends if the client never stops reading.
    if (reads++ > 100) return { done: true, value: undefined } as const;
    await new Promise(setImmediate);
    return { done: false, value: { sensor: "x".repeat(16_000) } } as const;
  };
  const call = createClient(GreenhouseService, transport).recordReadings({ [Symbol.asyncIterator]: () => ({ next }) });
  const respond = await within(responder.promise, "a full window");
  await waitSomeTurns();
  // Four messages fit, and the fifth waits.
  expect(reads).toBe(5);
  respond();
  await within(call, "the response");
  await waitSomeTurns();
  expect(reads).toBe(5);
});

/** Reads only a stream's first message. The signal cancels the stream later. */
const watch = async (greenhouse: Client<typeof GreenhouseService>, signal: AbortSignal): Promise<unknown> =>
  await greenhouse.watchReadings({}, { signal })[Symbol.asyncIterator]().next();

test("response streams that nobody reads do not block other calls", async () => {
  const windowBytes = 262_144;
  const streams = 6;
  await using server = await startScriptedServer({
    request: (connection, id) => {
      if (connection.requests > streams) return connection.send(...grpcResponse(id, watered));
      const first = readingOf("first");
      const rest = Buffer.alloc(windowBytes - first.byteLength);
      connection.send(headersFrame(id, grpcHead), dataFrame(id, first));
      for (let at = 0; at < rest.length; at += 16_384) connection.send(dataFrame(id, rest.subarray(at, at + 16_384)));
    },
  });
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl });
  const greenhouse = createClient(GreenhouseService, transport);
  const controller = new AbortController();
  await within(Promise.all(Array.from({ length: streams }, () => watch(greenhouse, controller.signal))), "the streams");
  expect((await within(greenhouse.waterBed({}), "another call")).bed).toBe(7n);
  controller.abort();
});

test("frames for a cancelled call do not affect other calls", async () => {
  await using server = await startScriptedServer({
    frame: (connection, { type, streamId }) => {
      // The messages are small, so about ten thousand fit in the window.
      if (type === frameType.resetStream)
        connection.send(...Array.from({ length: 5_000 }, () => dataFrame(streamId, readingOf("late"))));
    },
    request: (connection, id) => {
      if (connection.requests > 1) connection.send(...grpcResponse(id, watered));
      else connection.send(headersFrame(id, grpcHead), dataFrame(id, readingOf("first")));
    },
  });
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl });
  const greenhouse = createClient(GreenhouseService, transport);
  const controller = new AbortController();
  await within(watch(greenhouse, controller.signal), "the first message");
  controller.abort();
  for (let i = 0; i < 3; i++) expect((await within(greenhouse.waterBed({}), "the next call")).bed).toBe(7n);
  expect(server.connections).toBe(1);
});

test("responses to hundreds of cancelled calls keep the connection open", async () => {
  const ids: number[] = [];
  const batch = 600;
  let arrived = Promise.withResolvers<ScriptedConnection>();
  await using server = await startScriptedServer({
    request: (connection, id) => {
      if (connection.requests > 2 * batch) return connection.send(...grpcResponse(id, watered));
      if (ids.push(id) % batch === 0) arrived.resolve(connection);
    },
  });
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl });
  const greenhouse = createClient(GreenhouseService, transport);
  let connection: ScriptedConnection | undefined;
  for (let round = 0; round < 2; round++) {
    const controller = new AbortController();
    const calls = Array.from({ length: batch }, () => greenhouse.waterBed({}, { signal: controller.signal }));
    connection = await within(arrived.promise, "the calls");
    arrived = Promise.withResolvers();
    controller.abort();
    for (const { status } of await Promise.allSettled(calls)) expect(status).toBe("rejected");
  }
  connection?.send(...ids.flatMap((id) => grpcResponse(id, watered)));
  expect([(await within(greenhouse.waterBed({}), "the next call")).bed, server.connections]).toEqual([7n, 1]);
});

test("reconnecting to a server that allows no streams uses a backoff", async () => {
  await using server = await startScriptedServer({
    opening: [settingFrame(maxStreams, 0)],
    frame: ({ socket }, { type }) => {
      if (type === frameType.settings) socket.end();
    },
  });
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl });
  const greenhouse = createClient(GreenhouseService, transport);
  for (let i = 0; i < 2; i++)
    await expect(within(greenhouse.waterBed({}), "the call")).rejects.toMatchObject({ code: Code.Unavailable });
  expect(server.connections).toBe(2);
});

function failSynchronously(): never {
  throw new Error("not now");
}

test.each([
  ["synchronous error", failSynchronously],
  ["rejected promise", () => Promise.reject(new Error("not now"))],
])("a %s from the request iterator's return() does not prevent RST_STREAM", async (_when, close) => {
  const reset = Promise.withResolvers<number>();
  await using server = await startScriptedServer({
    frame: (connection, { type, streamId, payload }) => {
      if (type === frameType.headers) connection.send(headersFrame(streamId, grpcHead));
      if (type === frameType.resetStream) reset.resolve(payload.readUInt32BE(0));
    },
  });
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl });
  const input = { [Symbol.asyncIterator]: () => ({ next: () => new Promise<never>(() => undefined), return: close }) };
  const response = transport.stream(GreenhouseService.method.controlClimate, undefined, undefined, undefined, input);
  const messages = (await within(response, "the header")).message[Symbol.asyncIterator]();
  expect(await messages.return?.()).toEqual({ done: true, value: undefined });
  expect(await within(reset.promise, "RST_STREAM")).toBe(8);
});

/** Starts a server that sends these frames after the response header, and records the client's RST_STREAM code. */
async function startStreams(more: (streamId: number) => readonly Frame[]) {
  const reset = Promise.withResolvers<number>();
  const server = await startScriptedServer({
    frame: (connection, { type, streamId, payload }) => {
      if (type === frameType.headers) connection.send(headersFrame(streamId, grpcHead), ...more(streamId));
      if (type === frameType.resetStream) reset.resolve(payload.readUInt32BE(0));
    },
  });
  return { server, reset: reset.promise };
}

async function sensorsOf(messages: AsyncIterable<{ readonly sensor: string }>): Promise<readonly unknown[]> {
  const results: unknown[] = [];
  try {
    for await (const { sensor } of messages) results.push(sensor);
  } catch (error) {
    results.push(`${Code[ConnectError.from(error).code]}: ${ConnectError.from(error).rawMessage}`);
  }
  return results;
}

const fails = (streamId: number): Frame =>
  headersFrame(streamId, Object.entries({ "grpc-status": "5", "grpc-message": "gone" }), frameFlag.endStream);

test.each<[name: string, more: (streamId: number) => readonly Frame[], want: readonly unknown[], isReset?: boolean]>(
  // oxfmt-ignore
  [
    ["that fails with unread messages",
      (id) => [dataFrame(id, Buffer.concat([readingOf("a"), readingOf("b")])), fails(id)],
      ["a", "b", "NotFound: gone"]],
    ["that is reset before its first message", (id) => [resetFrame(id, 2)], ["Internal: the server reset the call"]],
    ["with an invalid message", (id) => [dataFrame(id, envelope(Buffer.of(0xff)))],
      ["Internal: the response is not a valid greenhouse.v1.Reading"], true],
  ],
)("a response stream %s yields all received messages, then an error", async (_name, more, want, isReset = false) => {
  const { server, reset } = await startStreams(more);
  await using _ = server;
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl });
  const results = within(sensorsOf(createClient(GreenhouseService, transport).watchReadings({})), "the end");
  expect(await results).toEqual(want);
  if (isReset) expect(await within(reset, "RST_STREAM")).toBe(8);
});

test("a cancelled call yields no more messages of the response", async () => {
  await using server = await startScriptedServer({
    request: (connection, id) => connection.send(...grpcResponse(id, Buffer.concat([readingOf("a"), readingOf("b")]))),
  });
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl });
  const controller = new AbortController();
  const call = createClient(GreenhouseService, transport).watchReadings({}, { signal: controller.signal });
  const messages = call[Symbol.asyncIterator]();
  expect(await within(messages.next(), "the first")).toMatchObject({ value: { sensor: "a" } });
  controller.abort();
  await expect(messages.next()).rejects.toMatchObject({ code: Code.Canceled });
});

test("a request stream's error is ignored once the response has arrived", async () => {
  const response = envelope(toBinary(RecordReadingsResponseSchema, create(RecordReadingsResponseSchema)));
  await using server = await startScriptedServer({
    frame: (connection, { type, streamId }) => {
      if (type === frameType.data) connection.send(...grpcResponse(streamId, response));
    },
  });
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl });
  const { promise: second, reject } = Promise.withResolvers<never>();
  const messages = [Promise.resolve({ done: false, value: { sensor: "first" } } as const), second];
  const input = {
    next: () => messages.shift() ?? second,
    return: async () => {
      reject(new Error("the input has failed"));
      return { done: true, value: undefined } as const;
    },
  };
  const call = createClient(GreenhouseService, transport).recordReadings({ [Symbol.asyncIterator]: () => input });
  expect(await within(call, "the response")).toMatchObject({ count: 0 });
});

test("a call whose signal is already aborted is not sent", async () => {
  await using server = await startScriptedServer(respondWatered);
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl });
  const call = createClient(GreenhouseService, transport).waterBed({}, { signal: AbortSignal.abort() });
  await expect(within(call, "the end")).rejects.toMatchObject({ code: Code.Canceled });
  expect(server.requests).toBe(0);
});

async function* throwing(): AsyncGenerator<{ sensor: string }> {
  yield { sensor: "a" };
  throw new ConnectError("mine", Code.Aborted);
}

test.each([
  { when: "before", hasHeader: false },
  { when: "after", hasHeader: true },
])("an error of the request stream $when the response header fails the call", async ({ hasHeader }) => {
  await using server = await startScriptedServer({
    frame: (connection, { type, streamId }) => {
      if (hasHeader && type === frameType.headers) connection.send(headersFrame(streamId, grpcHead));
    },
  });
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl });
  const client = createClient(GreenhouseService, transport);
  const call = hasHeader ? collect(client.controlClimate(throwing())) : client.recordReadings(throwing());
  await expect(within<unknown>(call, "the end")).rejects.toMatchObject({ code: Code.Aborted, rawMessage: "mine" });
});

test.each([
  { name: "a request stream that ended before the response gets no return() call", isFinite: true, count: 0 },
  { name: "a request stream that is open at the response gets one return() call", isFinite: false, count: 1 },
])("$name", async (testCase) => {
  const responded = Promise.withResolvers<void>();
  await using server = await startScriptedServer({
    frame: (connection, { type, streamId, flags }) => {
      const isLast = type === frameType.data && (!testCase.isFinite || (flags & frameFlag.endStream) > 0);
      const response = envelope(toBinary(RecordReadingsResponseSchema, create(RecordReadingsResponseSchema)));
      if (isLast) connection.send(...grpcResponse(streamId, response));
    },
  });
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl });
  let [reads, count] = [0, 0];
  const end = { done: true, value: undefined } as const;
  const next = async () => {
    reads += 1;
    if (reads === 2) {
      if (testCase.isFinite) return end;
      await responded.promise;
    }
    return { done: false, value: { sensor: "a" } } as const;
  };
  const input = { [Symbol.asyncIterator]: () => ({ next, return: async () => ((count += 1), end) }) };
  await within(createClient(GreenhouseService, transport).recordReadings(input), "the response");
  responded.resolve();
  await waitSomeTurns();
  expect([reads, count]).toEqual([2, testCase.count]);
});

test.each([
  { how: "succeeds", status: "0" },
  { how: "fails", status: "5" },
])("a call that $how closes its open request stream", async ({ status }) => {
  await using server = await startScriptedServer({
    frame: (connection, { type, streamId }) => {
      if (type !== frameType.headers) return;
      connection.send(headersFrame(streamId, [...grpcHead, ["grpc-status", status]], frameFlag.endStream));
    },
  });
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl });
  const ended = Promise.withResolvers<void>();
  async function* input(): AsyncGenerator<object> {
    try {
      for (;;) yield await new Promise((resolve) => setImmediate(resolve, {}));
    } finally {
      ended.resolve();
    }
  }
  const response = transport.stream(GreenhouseService.method.controlClimate, undefined, undefined, undefined, input());
  await within(Promise.allSettled([response]), "the response");
  await within(ended.promise, "the end of the input");
});

const program = `
  import { createClient } from "@connectrpc/connect";
  import { GreenhouseService } from "./protoport/examples/gen/greenhouse/v1/greenhouse_pb.ts";
  import { createGrpcTransport } from "./protoport/proxy/src/client/index.ts";
  const transport = createGrpcTransport({ baseUrl: process.env.BASE_URL });
  const greenhouse = createClient(GreenhouseService, transport);
`;

test.each([
  {
    name: "the transport is disposed of",
    code: `await greenhouse.waterBed({}); await transport[Symbol.asyncDispose](); console.log("disposed");`,
    output: "disposed\n",
  },
  { name: "all calls have finished", code: `await greenhouse.waterBed({});`, output: "" },
  {
    name: "the call is cancelled before a connection exists",
    code: `
      const controller = new AbortController();
      const call = greenhouse.waterBed({}, { signal: controller.signal });
      for (let i = 0; i < 50; i++) await Promise.resolve();
      controller.abort();
      await call.catch(({ code }) => console.log(code));`,
    output: `${Code.Canceled}\n`,
  },
])("when $name, the process exits", async ({ code, output }) => {
  await using server = await startScriptedServer(respondWatered);
  const args = ["--input-type=module", "-e", program + code];
  const options = { folder: projectFolder, environment: { BASE_URL: server.baseUrl } };
  const { exitCode, stdout, stderr } = await runProgram(process.execPath, args, options);
  expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 0, stdout: output, stderr: "" });
});

/** Checks that a call with "wait for ready" waits until `start` has started the server, and other calls fail. */
async function expectWaitForReady(options: UpstreamOptions, start: () => Promise<AsyncDisposable>): Promise<void> {
  await using upstream = createUpstream(options);
  const clientOf = (waitForReady: boolean): Client<typeof GreenhouseService> =>
    createClient(GreenhouseService, createGrpcTransport({ baseUrl: upstream, waitForReady }));
  // The call fails here while no other call waits, and below while another call waits.
  await expect(clientOf(false).waterBed({})).rejects.toMatchObject({ code: Code.Unavailable });
  const response = clientOf(true).waterBed({});
  await expect(clientOf(true).waterBed({}, { timeoutMs: 50 })).rejects.toMatchObject({ code: Code.DeadlineExceeded });
  await expect(clientOf(false).waterBed({})).rejects.toMatchObject({ code: Code.Unavailable });
  expect(upstream.load.waitingCalls).toBe(1);
  await using _ = await start();
  expect([(await within(response, "the response")).bed, upstream.load.waitingCalls]).toEqual([7n, 0]);
}

const greenhouse = { waterBed: () => ({ bed: 7n }) };

test("a call with waitForReady is sent once its server is reachable", async () => {
  using folder = createTempFolder();
  const path = folder.file("late.sock");
  await expectWaitForReady({ addresses: `unix:${path}` }, () => startGreenhouse(greenhouse, {}, { path }));
});

test("a call with waitForReady is sent once its name resolves", async () => {
  await using server = await startGreenhouse(greenhouse);
  let addresses: { address: string }[] = [];
  await expectWaitForReady(
    { addresses: `dns:orders.example:${String(server.address.port)}`, lookup: async () => addresses },
    async () => {
      addresses = [{ address: "127.0.0.1" }];
      return server;
    },
  );
});
