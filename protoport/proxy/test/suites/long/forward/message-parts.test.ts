import { once } from "node:events";
// oxfmt-ignore
import { type ClientHttp2Session, type ClientHttp2Stream, type ServerHttp2Stream, constants, createServer
} from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, type Interceptor, createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { encodeEnvelope, GreenhouseService, startProxy, WaterBedRequestSchema } from "@protoport/testing/proxy";
import { fieldValue, type HttpResponse, openHttp2, readHttp2Response, startOnLoopback } from "@protoport/testing/http";
import { collect, within } from "@protoport/testing/process";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { startProxied } from "../../../support/greenhouses.ts";

const kibibyte = 1024;
const mebibyte = 1024 * kibibyte;
const readMaxBytes = 64 * mebibyte;
const { NGHTTP2_CANCEL, NGHTTP2_INTERNAL_ERROR, NGHTTP2_REFUSED_STREAM } = constants;
const requestStreams = { clientStream: "RecordReadings", bidi: "ControlClimate" };
const rpcs = { unary: "WaterBed", serverStream: "WatchReadings", ...requestStreams };
/** RPCs whose responses are forwarded in parts. */
const downloads = [rpcs.unary, rpcs.serverStream, rpcs.bidi];

/** Returns a message with its prefix, or a message's start. @param announcedBytes - default: those that follow */
const messageOf = (bytes: number, announced = bytes): Buffer => encodeEnvelope(0, Buffer.alloc(bytes, 1), announced);

/** Starts a proxy in front of a server on node:http2, and opens a connection to the proxy. */
async function startCalls(onCall: (stream: ServerHttp2Stream) => void, options: Parameters<typeof startProxy>[2] = {}) {
  const server = createServer();
  const calls: ServerHttp2Stream[] = [];
  server.on("stream", (stream: ServerHttp2Stream) => {
    stream.on("error", () => undefined);
    calls.push(stream);
    onCall(stream);
  });
  const { baseUrl, sockets, [Symbol.asyncDispose]: closeServer } = await startOnLoopback(server);
  const proxy = await startProxy(baseUrl, [GreenhouseService.file], { readMaxBytes, ...options });
  const connection = await openHttp2(proxy.address);
  const open = (rpc: string, fields: readonly (readonly [string, string])[] = []): ClientHttp2Stream => {
    const header = [["content-type", "application/grpc+proto"], ["te", "trailers"], ...fields] as const;
    const request = { httpMethod: "POST", path: `/greenhouse.v1.GreenhouseService/${rpc}`, header };
    return connection.open(request, { endStream: false }).on("error", () => undefined);
  };
  const close = async (): Promise<void> => {
    connection[Symbol.dispose]();
    await proxy[Symbol.asyncDispose]();
    await closeServer();
  };
  return { calls, sockets, session: connection.session, open, [Symbol.asyncDispose]: close };
}

const grpcHeader = { ":status": 200, "content-type": "application/grpc+proto" };

function respond(stream: ServerHttp2Stream, ...pieces: readonly Buffer[]): void {
  stream.respond(grpcHeader, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
  for (const piece of pieces) stream.write(piece);
  stream.end();
}

const statusOf = ({ header, trailer }: HttpResponse): number =>
  Number(fieldValue(trailer, "grpc-status") ?? fieldValue(header, "grpc-status"));

/** Returns how many bytes a request has when it ends at the upstream, or the code with which it was reset. */
const requestEnd = (stream: ServerHttp2Stream): Promise<{ readonly bytes: number } | { readonly resetCode: number }> =>
  new Promise((resolve) => {
    let bytes = 0;
    stream.on("data", (piece: Buffer) => (bytes += piece.byteLength));
    stream.on("aborted", () => resolve({ resetCode: stream.rstCode }));
    stream.on("end", () => {
      if (!stream.aborted) resolve({ bytes });
    });
  });

async function pingSeveralTimes(session: ClientHttp2Session): Promise<void> {
  for (let at = 0; at < 10; at++) await within(new Promise((resolve) => session.ping(resolve)), "a PING");
}

/** How many bytes from 20 calls may wait in the proxy: in their windows, and queued for the other side. */
const maxWaitingBytes = 20 * 256 * kibibyte + 2 * mebibyte;
const start = messageOf(4 * mebibyte, readMaxBytes);

test.each(Object.values(rpcs))("a %s request is paused while the upstream does not read", async (rpc) => {
  const arrived = Promise.withResolvers<unknown>();
  await using proxied = await startCalls((stream) => stream.once("readable", arrived.resolve));
  for (let at = 0; at < 20; at++) proxied.open(rpc).write(start);
  await within(arrived.promise, "a part of a request");
  await pingSeveralTimes(proxied.session);
  const { bytesWritten } = proxied.session.socket;
  expect([bytesWritten > 0, bytesWritten < maxWaitingBytes]).toEqual([true, true]);
});

test.each(downloads)("a %s response is paused while the caller does not read", async (rpc) => {
  await using proxied = await startCalls((stream) => {
    stream.resume().respond(grpcHeader);
    stream.write(start);
  });
  // The caller's connection window is 64 KiB.
  const streams = Array.from({ length: 20 }, () => proxied.open(rpc).pause());
  for (const stream of streams) stream.end(messageOf(0));
  await Promise.all(streams.map((stream) => within(once(stream, "response"), "a header")));
  await pingSeveralTimes(proxied.session);
  const bytesWritten = [...proxied.sockets].reduce((sum, socket) => sum + socket.bytesWritten, 0);
  expect([bytesWritten > 0, bytesWritten < maxWaitingBytes]).toEqual([true, true]);
});

test.each(Object.values(rpcs))("large %s messages are forwarded completely in both directions", async (rpc) => {
  const sizes = [64 * kibibyte + 1, 100_000, mebibyte];
  await using proxied = await startCalls((stream) => {
    const pieces: Buffer[] = [];
    stream.on("data", (piece: Buffer) => pieces.push(piece)).on("end", () => respond(stream, Buffer.concat(pieces)));
  });
  const sent = sizes.map((size) => messageOf(size));
  const responses = sent.map((message) => {
    // A caller that accepts compressed messages.
    const stream = proxied.open(rpc, [["grpc-accept-encoding", rpc === rpcs.clientStream ? "identity" : "gzip"]]);
    stream.end(message);
    return readHttp2Response(stream);
  });
  const received = await Promise.all(responses);
  expect(received.map(statusOf)).toEqual([0, 0, 0]);
  expect(received.map(({ body }, at) => body.equals(sent[at] ?? Buffer.alloc(0)))).toEqual([true, true, true]);
});

/** Invalid requests, with the expected status. `isForwarded` is whether the upstream gets the start. */
// oxfmt-ignore
const invalidRequests = [
  { name: "a truncated message", body: messageOf(mebibyte, readMaxBytes), code: Code.InvalidArgument,
    isForwarded: true },
  { name: "a message above the limit", body: messageOf(100, readMaxBytes + 1), code: Code.ResourceExhausted,
    isForwarded: false },
] as const;

describe.each(invalidRequests)("a request with $name", ({ body, code, isForwarded }) => {
  test.each(Object.values(rpcs))("is rejected for %s before it completes at the upstream", async (rpc) => {
    const requests: ReturnType<typeof requestEnd>[] = [];
    await using proxied = await startCalls((stream) => void requests.push(requestEnd(stream)));
    const stream = proxied.open(rpc);
    stream.end(body);
    const response = await readHttp2Response(stream);
    expect([statusOf(response), response.resetCode]).toEqual([code, 0]);
    if (isForwarded) await expect.poll(() => requests.length).toBe(1);
    for (const request of requests) expect(await request).toEqual({ resetCode: NGHTTP2_CANCEL });
  });
});

test("a large unary request refused after its initial window is retried", async () => {
  let calls = 0;
  await using proxied = await startCalls((stream) => {
    const isRefused = ++calls === 1;
    let bytes = 0;
    stream.on("data", (piece: Buffer) => {
      bytes += piece.byteLength;
      if (isRefused && bytes > 60_000) stream.close(NGHTTP2_REFUSED_STREAM);
    });
    stream.on("end", () => {
      if (!isRefused) respond(stream, messageOf(bytes));
    });
  });
  const stream = proxied.open(rpcs.unary);
  stream.end(messageOf(mebibyte));
  const response = await readHttp2Response(stream);
  expect([statusOf(response), response.body.byteLength, calls]).toEqual([0, mebibyte + 10, 2]);
});

test("a second message in a unary call resets the upstream's request", async () => {
  const requests: ReturnType<typeof requestEnd>[] = [];
  await using proxied = await startCalls((stream) => void requests.push(requestEnd(stream)));
  const stream = proxied.open(rpcs.unary);
  stream.end(Buffer.concat([messageOf(mebibyte), messageOf(1)]));
  expect(statusOf(await readHttp2Response(stream))).toBe(Code.Unimplemented);
  expect(await Promise.all(requests)).toEqual([{ resetCode: NGHTTP2_CANCEL }]);
});

// oxfmt-ignore
const upstreamEnds = [
  { name: "a reset by the upstream", end: (stream: ServerHttp2Stream) => stream.close(NGHTTP2_INTERNAL_ERROR),
    code: Code.Internal },
  { name: "a lost connection", end: (stream: ServerHttp2Stream) => stream.session?.destroy(), code: Code.Unavailable },
  { name: "an error of the upstream", end: (stream: ServerHttp2Stream) => {
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "9" }));
      stream.end();
    }, code: Code.FailedPrecondition },
  { name: "a truncated response", end: (stream: ServerHttp2Stream) => {
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      stream.end();
    }, code: Code.Internal },
] as const;

describe.each(upstreamEnds)("$name within a response message", ({ end, code }) => {
  test.each(downloads)("is reported to a %s caller after the received parts", async (rpc) => {
    const part = messageOf(100_000, readMaxBytes);
    await using proxied = await startCalls((stream) => {
      stream.resume().respond(grpcHeader, { waitForTrailers: true });
      stream.write(part);
    });
    const stream = proxied.open(rpc);
    stream.end(messageOf(0));
    const response = readHttp2Response(stream);
    let receivedBytes = 0;
    stream.on("data", (piece: Buffer) => {
      receivedBytes += piece.byteLength;
      const [call] = proxied.calls;
      if (receivedBytes === part.byteLength && call !== undefined) end(call);
    });
    expect(statusOf(await response)).toBe(code);
  });
});

test.each(Object.values(rpcs))("a caller that cancels within a %s message cancels the upstream's call", async (rpc) => {
  const ends: ReturnType<typeof requestEnd>[] = [];
  const arrived = Promise.withResolvers<unknown>();
  await using proxied = await startCalls((stream) => {
    ends.push(requestEnd(stream));
    stream.once("data", arrived.resolve);
  });
  const stream = proxied.open(rpc);
  stream.write(messageOf(mebibyte, readMaxBytes));
  await within(arrived.promise, "a part");
  stream.close(NGHTTP2_CANCEL);
  expect(await Promise.all(ends)).toEqual([{ resetCode: NGHTTP2_CANCEL }]);
});

test.each(downloads)("a caller that cancels within a %s response cancels the upstream's call", async (rpc) => {
  const closed = Promise.withResolvers<number>();
  await using proxied = await startCalls((stream) => {
    stream.resume().respond(grpcHeader);
    stream.write(messageOf(mebibyte, readMaxBytes));
    stream.on("close", () => closed.resolve(stream.rstCode ?? 0));
  });
  const stream = proxied.open(rpc);
  stream.end(messageOf(0));
  await within(once(stream, "data"), "a part");
  stream.close(NGHTTP2_CANCEL);
  expect(await within(closed.promise, "the end of the upstream's call")).toBe(NGHTTP2_CANCEL);
});

test.each(downloads)("a %s response above the limit fails before any part is forwarded", async (rpc) => {
  await using proxied = await startCalls((stream) => respond(stream.resume(), messageOf(100, readMaxBytes + 1)));
  const stream = proxied.open(rpc);
  stream.end(messageOf(0));
  const response = await readHttp2Response(stream);
  expect([statusOf(response), response.body.byteLength]).toEqual([Code.ResourceExhausted, 0]);
});

test.each([
  { name: "a second message after a large one", request: messageOf(0), response: [messageOf(mebibyte), messageOf(1)] },
  { name: "no message after a large request", request: messageOf(mebibyte), response: [] },
])("a unary response with $name fails the call", async ({ request, response }) => {
  await using proxied = await startCalls((stream) => respond(stream.resume(), ...response));
  const stream = proxied.open(rpcs.unary);
  stream.end(request);
  expect(statusOf(await readHttp2Response(stream))).toBe(Code.Internal);
});

test("a large message whose prefix is split is forwarded in parts", async () => {
  const arrived = Promise.withResolvers<unknown>();
  await using proxied = await startCalls((stream) => stream.once("data", arrived.resolve));
  const stream = proxied.open(rpcs.unary);
  stream.write(start.subarray(0, 3));
  await pingSeveralTimes(proxied.session);
  stream.write(start.subarray(3, mebibyte));
  await within(arrived.promise, "a part of the incomplete message");
});

test("interceptors receive complete messages", async () => {
  const received: unknown[] = [];
  const record: Interceptor = (next) => async (request) => {
    received.push(request.message);
    return next(request);
  };
  const note = "n".repeat(mebibyte);
  await using proxied = await startCalls((call) => respond(call.resume(), messageOf(0)), { interceptors: [record] });
  const stream = proxied.open(rpcs.unary);
  stream.end(encodeEnvelope(0, toBinary(WaterBedRequestSchema, create(WaterBedRequestSchema, { note }))));
  expect([statusOf(await readHttp2Response(stream)), received]).toMatchObject([0, [{ note }]]);
});

test("a binary body with the content type grpc-web-text is not forwarded", async () => {
  await using proxied = await startCalls((stream) => respond(stream.resume(), messageOf(0)));
  const stream = proxied.session.request({
    ":method": "POST",
    ":path": `/greenhouse.v1.GreenhouseService/${rpcs.unary}`,
    "content-type": "application/grpc-web-text+proto",
  });
  stream.end(messageOf(mebibyte));
  await readHttp2Response(stream);
  expect(proxied.calls).toEqual([]);
});

/** Different strings that fill part of a frame, several frames, several chunks and several windows. */
const notes = [20, 40, 100, 1_000].flatMap((kibibytes) =>
  ["oak", "elm", "fir", "yew"].map((tree) => `${tree} ${kibibytes} `.repeat(kibibytes * 128)),
);

// Disables compression, so that messages are forwarded unchanged.
const acceptCompression: [] = [];

const protocols = [
  { name: "Connect over HTTP/1.1", create: createConnectTransport, httpVersion: "1.1" },
  { name: "gRPC-Web over HTTP/2", create: createGrpcWebTransport, httpVersion: "2" },
  { name: "gRPC", create: createGrpcTransport, httpVersion: "2" },
] as const;

describe.each(protocols)("large messages with $name", ({ create: createTransport, httpVersion }) => {
  test("are forwarded unchanged, concurrently", async () => {
    await using proxy = await startProxied({
      waterBed: ({ note }) => ({ note }),
      async *watchReadings({ sensor, count }) {
        for (let at = 0; at < count; at += 1) yield { sensor, degreesCelsius: at };
      },
    });
    const transport = createTransport({ baseUrl: proxy.baseUrl, httpVersion, acceptCompression });
    const client = createClient(GreenhouseService, transport);
    const calls = notes.map(async (note) => (await client.waterBed({ note })).note === note);
    const streams = notes.map(async (sensor) =>
      (await collect(client.watchReadings({ sensor, count: 3 }))).every((reading) => reading.sensor === sensor),
    );
    expect(await Promise.all([...calls, ...streams])).toEqual(Array(2 * notes.length).fill(true));
  });
});

test.each(
  // oxfmt-ignore
  [
    { name: "a request over the proxy's readMaxBytes", sent: 3_000, options: { readMaxBytes: 2_000 }, want: 413 },
    { name: "a response over the upstream's readMaxBytes", sent: 3_000,
      options: { readMaxBytes: 5_000, upstreamOptions: { readMaxBytes: 2_000 } }, want: 429 },
    { name: "a response over only the proxy's readMaxBytes", sent: 1_500,
      options: { readMaxBytes: 2_000, upstreamOptions: { readMaxBytes: 5_000 } }, want: 200 },
  ],
)("a call with $name gets an HTTP $want response", async ({ sent, options, want }) => {
  await using proxy = await startProxied({ waterBed: ({ note }) => ({ note: `${note}${note}` }) }, options);
  const body = JSON.stringify({ note: "n".repeat(sent) });
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${proxy.baseUrl}/beds/1:water`, { method: "POST", headers, body });
  expect(response.status).toBe(want);
  await response.text();
});
