import { create, toBinary } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError, createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import {
  GreenhouseService,
  ReadingSchema,
  RecordReadingsResponseSchema,
} from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGrpcTransport, createUpstream, type UpstreamOptions } from "../../src/client/index.ts";
import {
  dataFrame,
  type Frame,
  frame,
  frameFlag,
  frameType,
  headersFrame,
  resetFrame,
} from "../../../testing/src/carriers/http2-frames.ts";
import { collect } from "../../../testing/src/collect.ts";
import { within } from "../../../testing/src/deadline.ts";
import { startGreenhouse } from "../../../testing/src/gateway/greenhouse.ts";
import { watered } from "../../../testing/src/gateway/greenhouse-client.ts";
import {
  envelope,
  grpcAnswer,
  grpcHead,
  type ScriptedConnection,
  startScriptedServer,
} from "../../../testing/src/gateway/scripted-http2-server.ts";
import { settingFrame } from "../../../testing/src/http2/http2-requests.ts";
import { projectFolder, runProgram } from "../../../testing/src/process/child-program.ts";
import { createTempFolder } from "../../../testing/src/process/temp-folder.ts";
import { someTurns } from "../../../testing/src/some-turns.ts";

// What neither a call that is sent again, nor one that is given up, may do to itself, to others or to the program.

function readingOf(sensor: string): Buffer {
  return envelope(toBinary(ReadingSchema, { $typeName: "greenhouse.v1.Reading", sensor, degreesCelsius: 0 }));
}

const streamsMax = 3;

const backoff = { initialBackoffMs: 1, maxBackoffMs: 1, backoffMultiplier: 1 };
const retry = { ...backoff, maxAttempts: 2, retryableCodes: [Code.Unavailable] };

const endings = [
  { how: "refused", ends: (id: number) => resetFrame(id, 7) },
  {
    how: "to be sent again by its policy",
    ends: (id: number) => headersFrame(id, [...grpcHead, ["grpc-status", "14"]], frameFlag.endStream),
  },
];

/** More than is kept of a stream, and room for all of it at once. */
const large = "x".repeat(70_000);
const roomForLarge = [settingFrame(4, 1_000_000), frame(frameType.windowUpdate, 0, 0, Buffer.of(0, 16, 0, 0))];

test.each(endings)("a stream that is $how loses no message, however large the next one is", async ({ ends }) => {
  const refused = Promise.withResolvers<ScriptedConnection>();
  const bodies = new Map<number, Buffer>();
  let acknowledged = 0;
  await using server = await startScriptedServer({
    opening: roomForLarge,
    frame: (connection, { type, flags, streamId, payload }) => {
      if (type === frameType.settings && flags === 1 && ++acknowledged === 2) refused.resolve(connection);
      if (type !== frameType.data) return;
      // The first message: its stream is refused, and no other may be opened for a while.
      if (bodies.size === 0) connection.send(settingFrame(streamsMax, 0), ends(streamId));
      bodies.set(streamId, Buffer.concat([bodies.get(streamId) ?? Buffer.alloc(0), payload]));
    },
    request: (connection, id) => {
      const answer = { $typeName: "greenhouse.v1.RecordReadingsResponse", count: 3, meanDegreesCelsius: 0 } as const;
      connection.send(...grpcAnswer(id, envelope(toBinary(RecordReadingsResponseSchema, answer))));
    },
  });
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl, retry });
  async function* input(): AsyncGenerator<{ sensor: string }> {
    yield { sensor: "first" };
    const connection = await refused.promise;
    // Once the call has taken the large message.
    setImmediate(() => connection.send(settingFrame(streamsMax, 100)));
    yield { sensor: large };
    yield { sensor: "last" };
  }
  await within(createClient(GreenhouseService, transport).recordReadings(input()), "the call");
  const whole = Buffer.concat([readingOf("first"), readingOf(large), readingOf("last")]);
  expect([...bodies.values()].map((body) => body.byteLength)).toEqual([
    readingOf("first").byteLength,
    whole.byteLength,
  ]);
  expect([...bodies.values()].at(-1)?.equals(whole)).toBe(true);
});

test.each(endings)("a stream that is $how is not sent again without messages that were let go", async ({ ends }) => {
  await using server = await startScriptedServer({
    opening: roomForLarge,
    request: (connection, id) => connection.send(ends(id)),
  });
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl, retry });
  async function* input(): AsyncGenerator<{ sensor: string }> {
    yield { sensor: large };
  }
  const call = createClient(GreenhouseService, transport).recordReadings(input());
  await expect(within(call, "the call")).rejects.toMatchObject({ code: Code.Unavailable });
  expect(server.requests).toBe(1);
});

test("messages are not read ahead of what the server takes, nor after it has answered", async () => {
  const answering = Promise.withResolvers<() => void>();
  let receivedBytes = 0;
  await using server = await startScriptedServer({
    frame: (connection, { type, streamId, payload }) => {
      if (type !== frameType.data) return;
      receivedBytes += payload.byteLength;
      // All of the window: it is not told to go on.
      const answer = envelope(toBinary(RecordReadingsResponseSchema, create(RecordReadingsResponseSchema)));
      if (receivedBytes === 65_535)
        answering.resolve(() => connection.send(...grpcAnswer(streamId, answer), resetFrame(streamId, 0)));
    },
  });
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl });
  let reads = 0;
  const next = async () => {
    // Not without end, if nobody stops.
    if (reads++ > 100) return { done: true, value: undefined } as const;
    await new Promise(setImmediate);
    return { done: false, value: { sensor: "x".repeat(16_000) } } as const;
  };
  const call = createClient(GreenhouseService, transport).recordReadings({ [Symbol.asyncIterator]: () => ({ next }) });
  const answer = await within(answering.promise, "a full window");
  await someTurns();
  // Four fit, and the fifth waits.
  expect(reads).toBe(5);
  answer();
  await within(call, "the answer");
  await someTurns();
  expect(reads).toBe(5);
});

/** Reads the first message of a stream, and no more; only the signal ends it. */
async function watch(greenhouse: Client<typeof GreenhouseService>, signal: AbortSignal): Promise<void> {
  const messages = greenhouse.watchReadings({}, { signal })[Symbol.asyncIterator]();
  await messages.next();
}

test("streams that nobody reads hold up no other call", async () => {
  const windowBytes = 262_144;
  const streams = 6;
  await using server = await startScriptedServer({
    request: (connection, id) => {
      if (connection.requests > streams) return connection.send(...grpcAnswer(id, watered));
      const first = readingOf("first");
      const rest = Buffer.alloc(windowBytes - first.byteLength);
      connection.send(headersFrame(id, grpcHead), dataFrame(id, first));
      for (let at = 0; at < rest.byteLength; at += 16_384)
        connection.send(dataFrame(id, rest.subarray(at, at + 16_384)));
    },
  });
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl });
  const greenhouse = createClient(GreenhouseService, transport);
  const controller = new AbortController();
  await within(Promise.all(Array.from({ length: streams }, () => watch(greenhouse, controller.signal))), "the streams");
  expect((await within(greenhouse.waterBed({}), "a call beside them")).bed).toBe(7n);
  controller.abort();
});

test("what comes after a call was given up ends no other call, however much it is", async () => {
  await using server = await startScriptedServer({
    frame: (connection, { type, streamId }) => {
      // Small messages, of which a window holds some ten thousand.
      if (type === frameType.resetStream) {
        connection.send(...Array.from({ length: 5_000 }, () => dataFrame(streamId, readingOf("late"))));
      }
    },
    request: (connection, id) => {
      if (connection.requests > 1) connection.send(...grpcAnswer(id, watered));
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

test("a server that answers thousands of calls that were given up keeps its connection", async () => {
  const ids: number[] = [];
  const batch = 600;
  let arrived = Promise.withResolvers<ScriptedConnection>();
  await using server = await startScriptedServer({
    request: (connection, id) => {
      if (connection.requests > 2 * batch) return connection.send(...grpcAnswer(id, watered));
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
  connection?.send(...ids.flatMap((id) => grpcAnswer(id, watered)));
  expect((await within(greenhouse.waterBed({}), "the next call")).bed).toBe(7n);
  expect(server.connections).toBe(1);
});

test("a server that takes no streams and ends connections is not connected to over and over", async () => {
  await using server = await startScriptedServer({
    opening: [settingFrame(streamsMax, 0)],
    frame: ({ socket }, { type }) => {
      if (type === frameType.settings) socket.end();
    },
  });
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl });
  const greenhouse = createClient(GreenhouseService, transport);
  for (let i = 0; i < 2; i++) {
    await expect(within(greenhouse.waterBed({}), "the call")).rejects.toMatchObject({ code: Code.Unavailable });
  }
  expect(server.connections).toBe(2);
});

test.each([
  {
    when: "at once",
    end: () => {
      throw new Error("not now");
    },
  },
  { when: "later", end: () => Promise.reject(new Error("not now")) },
])("an input that throws $when as it is ended does not hinder its call from ending", async ({ end }) => {
  const reset = Promise.withResolvers<number>();
  await using server = await startScriptedServer({
    frame: (connection, { type, streamId, payload }) => {
      if (type === frameType.headers) connection.send(headersFrame(streamId, grpcHead));
      if (type === frameType.resetStream) reset.resolve(payload.readUInt32BE(0));
    },
  });
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl });
  const input = { [Symbol.asyncIterator]: () => ({ next: () => new Promise<never>(() => undefined), return: end }) };
  const method = GreenhouseService.method.controlClimate;
  const answer = transport.stream(method, undefined, undefined, undefined, input);
  const messages = (await within(answer, "the header")).message[Symbol.asyncIterator]();
  expect(await messages.return?.()).toEqual({ done: true, value: undefined });
  expect(await within(reset.promise, "RST_STREAM")).toBe(8);
});

/** A server that sends this as the answer begins, and notes how streams are reset. */
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
  const seen: unknown[] = [];
  try {
    for await (const { sensor } of messages) seen.push(sensor);
  } catch (error) {
    seen.push(`${Code[ConnectError.from(error).code]}: ${ConnectError.from(error).rawMessage}`);
  }
  return seen;
}

function fails(streamId: number): Frame {
  return headersFrame(
    streamId,
    [
      ["grpc-status", "5"],
      ["grpc-message", "gone"],
    ],
    frameFlag.endStream,
  );
}

test.each<{ name: string; more: (streamId: number) => readonly Frame[]; want: readonly unknown[]; isReset?: boolean }>([
  {
    name: "that fails after messages that nobody has read yet",
    more: (id) => [dataFrame(id, Buffer.concat([readingOf("a"), readingOf("b")])), fails(id)],
    want: ["a", "b", "NotFound: gone"],
  },
  {
    name: "that is reset before a message",
    more: (id) => [resetFrame(id, 2)],
    want: ["Internal: the server has reset the call"],
  },
  {
    name: "of a message that is none",
    more: (id) => [dataFrame(id, envelope(Buffer.of(0xff)))],
    want: ["Internal: the answer is not a valid greenhouse.v1.Reading"],
    isReset: true,
  },
])("a stream $name ends as it should", async ({ more, want, isReset = false }) => {
  const { server, reset } = await startStreams(more);
  await using _ = server;
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl });
  const seen = within(sensorsOf(createClient(GreenhouseService, transport).watchReadings({})), "the end");
  expect(await seen).toEqual(want);
  if (isReset) expect(await within(reset, "RST_STREAM")).toBe(8);
});

test("an error has the fields of the header, and is marked as a server's though its details are none", async () => {
  await using server = await startScriptedServer({
    request: (connection, id) => {
      const trailer = [
        ["grpc-status", "5"],
        ["grpc-status-details-bin", "?"],
      ] as const;
      connection.send(...grpcAnswer(id, Buffer.alloc(0), trailer, [...grpcHead, ["x-head", "1"]]));
    },
  });
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl });
  const error = await createClient(GreenhouseService, transport)
    .waterBed({})
    .catch((reason: unknown) => ConnectError.from(reason));
  expect(error).toMatchObject({ code: Code.NotFound, isWireError: true });
  expect(error instanceof ConnectError && error.metadata.get("x-head")).toBe("1");
});

test("a caller that gives up gets no more of an answer, though all of it has come", async () => {
  await using server = await startScriptedServer({
    request: (connection, id) => connection.send(...grpcAnswer(id, Buffer.concat([readingOf("a"), readingOf("b")]))),
  });
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl });
  const controller = new AbortController();
  const call = createClient(GreenhouseService, transport).watchReadings({}, { signal: controller.signal });
  const messages = call[Symbol.asyncIterator]();
  expect(await within(messages.next(), "the first")).toMatchObject({ value: { sensor: "a" } });
  controller.abort();
  await expect(messages.next()).rejects.toMatchObject({ code: Code.Canceled });
});

test("an input that fails once the answer is complete takes nothing of it", async () => {
  const answer = envelope(toBinary(RecordReadingsResponseSchema, create(RecordReadingsResponseSchema)));
  await using server = await startScriptedServer({
    frame: (connection, { type, streamId }) => {
      if (type === frameType.data) connection.send(...grpcAnswer(streamId, answer));
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
  expect(await within(call, "the answer")).toMatchObject({ count: 0 });
});

test("a call that was given up before it began is not sent", async () => {
  await using server = await startScriptedServer({
    request: (connection, id) => connection.send(...grpcAnswer(id, watered)),
  });
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl });
  const call = createClient(GreenhouseService, transport).waterBed({}, { signal: AbortSignal.abort() });
  await expect(within(call, "the end")).rejects.toMatchObject({ code: Code.Canceled });
  expect(server.requests).toBe(0);
});

async function* throwing(): AsyncGenerator<{ sensor: string }> {
  yield { sensor: "a" };
  throw new ConnectError("mine", Code.Aborted);
}

test.each([{ isBegun: false }, { isBegun: true }])(
  "what an input throws is the error of its call: $isBegun",
  async ({ isBegun }) => {
    await using server = await startScriptedServer({
      frame: (connection, { type, streamId }) => {
        if (isBegun && type === frameType.headers) connection.send(headersFrame(streamId, grpcHead));
      },
    });
    await using transport = createGrpcTransport({ baseUrl: server.baseUrl });
    const client = createClient(GreenhouseService, transport);
    const call = isBegun ? collect(client.controlClimate(throwing())) : client.recordReadings(throwing());
    await expect(within<unknown>(call, "the end")).rejects.toMatchObject({ code: Code.Aborted, rawMessage: "mine" });
  },
);

test.each([
  { name: "has ended", ends: true, count: 0 },
  { name: "could go on", ends: false, count: 1 },
])("an input that $name when its call is answered is read no further, and ended $count times", async (row) => {
  const answered = Promise.withResolvers<void>();
  await using server = await startScriptedServer({
    frame: (connection, { type, streamId, flags }) => {
      const isLast = row.ends ? type === frameType.data && (flags & frameFlag.endStream) > 0 : type === frameType.data;
      const answer = envelope(toBinary(RecordReadingsResponseSchema, create(RecordReadingsResponseSchema)));
      if (isLast) connection.send(...grpcAnswer(streamId, answer));
    },
  });
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl });
  let [reads, count] = [0, 0];
  const end = { done: true, value: undefined } as const;
  const next = async () => {
    reads += 1;
    if (reads === 2) {
      if (row.ends) return end;
      await answered.promise;
    }
    return { done: false, value: { sensor: "a" } } as const;
  };
  const input = { [Symbol.asyncIterator]: () => ({ next, return: async () => ((count += 1), end) }) };
  const call = createClient(GreenhouseService, transport).recordReadings(input);
  await within(call, "the answer");
  answered.resolve();
  await someTurns();
  expect([reads, count]).toEqual([2, row.count]);
});

test.each([
  { how: "is answered", status: "0" },
  { how: "fails", status: "5" },
])("the input of a call that $how before it has ended is ended", async ({ status }) => {
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
  const answer = transport.stream(GreenhouseService.method.controlClimate, undefined, undefined, undefined, input());
  await within(Promise.allSettled([answer]), "the answer");
  await within(ended.promise, "the end of the input");
});

const program = `
  import { createClient } from "@connectrpc/connect";
  import { GreenhouseService } from "./examples/gen/greenhouse/v1/greenhouse_pb.ts";
  import { createGrpcTransport } from "./packages/proxy/src/client/index.ts";
  const transport = createGrpcTransport({ baseUrl: process.env.BASE_URL });
  const greenhouse = createClient(GreenhouseService, transport);
`;

test.each([
  {
    name: "its transport is disposed of",
    ends: `await greenhouse.waterBed({}); await transport[Symbol.asyncDispose](); console.log("disposed");`,
    says: "disposed\n",
  },
  { name: "its calls are answered", ends: `await greenhouse.waterBed({});`, says: "" },
  {
    name: "its call was given up before there was a connection",
    ends: `
      const controller = new AbortController();
      const call = greenhouse.waterBed({}, { signal: controller.signal });
      for (let i = 0; i < 50; i++) await Promise.resolve();
      controller.abort();
      await call.catch(({ code }) => console.log(code));`,
    says: `${Code.Canceled}\n`,
  },
])("a program ends once $name", async ({ ends, says }) => {
  await using server = await startScriptedServer({
    request: (connection, id) => connection.send(...grpcAnswer(id, watered)),
  });
  const { exitCode, stdout, stderr } = await runProgram(
    process.execPath,
    ["--input-type=module", "-e", program + ends],
    { folder: projectFolder, environment: { BASE_URL: server.baseUrl } },
  );
  expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 0, stdout: says, stderr: "" });
});

/** A call that waits for ready, and what others get meanwhile. */
async function waitFor(options: UpstreamOptions, begin: () => Promise<AsyncDisposable>): Promise<void> {
  await using upstream = createUpstream(options);
  const clientOf = (waitForReady: boolean): Client<typeof GreenhouseService> =>
    createClient(GreenhouseService, createGrpcTransport({ baseUrl: upstream, waitForReady }));
  // While none waits, and while one does.
  await expect(clientOf(false).waterBed({})).rejects.toMatchObject({ code: Code.Unavailable });
  const answer = clientOf(true).waterBed({});
  await expect(clientOf(true).waterBed({}, { timeoutMs: 50 })).rejects.toMatchObject({ code: Code.DeadlineExceeded });
  await expect(clientOf(false).waterBed({})).rejects.toMatchObject({ code: Code.Unavailable });
  expect(upstream.load.waitingCalls).toBe(1);
  await using _ = await begin();
  expect((await within(answer, "the answer")).bed).toBe(7n);
  expect(upstream.load.waitingCalls).toBe(0);
}

const greenhouse = { waterBed: () => ({ bed: 7n }) };

test("a call that waits for ready is sent once its server can be reached, and others fail at once", async () => {
  using folder = createTempFolder();
  const path = folder.file("late.sock");
  await waitFor({ addresses: `unix:${path}` }, () => startGreenhouse(greenhouse, {}, { path }));
});

test("a call that waits for ready is sent once its name is known, and others fail at once", async () => {
  await using server = await startGreenhouse(greenhouse);
  let found: { address: string }[] = [];
  await waitFor(
    { addresses: `dns:orders.example:${String(server.address.port)}`, lookup: async () => found },
    async () => {
      found = [{ address: "127.0.0.1" }];
      return server;
    },
  );
});

test("a call that waits for ready fails when its transport is closed", async () => {
  const transport = createGrpcTransport({ baseUrl: "unix:/none/late.sock", waitForReady: true });
  const call = createClient(GreenhouseService, transport).waterBed({});
  await transport[Symbol.asyncDispose]();
  await expect(within(call, "the end of the call")).rejects.toMatchObject({ code: Code.Unavailable });
});

test("a call that waits for a connection is told that its transport was closed", async () => {
  await using server = await startScriptedServer({});
  const transport = createGrpcTransport({ baseUrl: server.baseUrl });
  const call = createClient(GreenhouseService, transport).waterBed({});
  for (let i = 0; i < 50; i++) await Promise.resolve();
  const ends = Promise.allSettled([call, transport[Symbol.asyncDispose]()]);
  const [outcome] = await within(ends, "the end");
  expect(outcome).toMatchObject({ reason: { code: Code.Unavailable, rawMessage: "the transport is closed" } });
});
