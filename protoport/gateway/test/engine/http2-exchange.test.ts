import { constants } from "node:http2";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Client, credentials } from "@grpc/grpc-js";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, onTestFinished, test } from "vitest";
import { HpackDecoder } from "../../src/engine/http2/hpack/decoder.ts";
import type { Admit } from "../../src/index.ts";
// oxfmt-ignore
import { acceptedSocket, dataFrame, type Field, fieldValue, type Frame, type FrameConnection, frameFlag, frameType,
  headerOfListBytes, headersFrame, http2Servers, openFrames, openGreenhouse, openHttp2, pingFrame, readHttp2Response,
  resetFrame, shared, startGreenhouse, type TestGreenhouse, waterBedProcedure, within } from "@protoport/testing";
import { emptyMessage, grpcHeader, sendUnaryCall } from "@protoport/testing/http";
import { postHeader } from "../../../testing/src/http2/http2-requests.ts";

type Handlers = Parameters<typeof startGreenhouse>[0];
const json: Field = ["content-type", "application/json"];
const never: Promise<never> = new Promise(() => {});

const asIs = (bytes: Buffer): Buffer => bytes;

/** Waits until the last connection's client sends nothing, because the windows are exhausted. */
async function clientBlocked(): Promise<void> {
  const socket = acceptedSocket();
  for (let turns = 0, bytes = 0; turns < 20; turns += 1) {
    if (socket.bytesRead > bytes) turns = 0;
    bytes = socket.bytesRead;
    await nextTurn();
  }
}

/** Returns the status at the start of a header block. */
const statusOf = (hpack: HpackDecoder, { payload }: Frame): string | undefined =>
  hpack.decode(payload, 0, payload.byteLength).fields[1];

const admitKey: Admit = ({ header }) => {
  if (header.get("x-key") !== "k") throw new ConnectError("no key", Code.Unauthenticated);
};

describe.each(http2Servers)("an HTTP/2 stream (%s)", (http2) => {
  test.each<{ name: string; end: (connection: FrameConnection) => void }>([
    { name: "the client closes the connection", end: ({ socket }) => void socket.end() },
    { name: "the client resets the connection", end: ({ socket }) => void socket.resetAndDestroy() },
    { name: "the client resets the stream", end: (connection) => connection.send(resetFrame(1, 8)) },
    { name: "the client resets the stream without an error", end: (connection) => connection.send(resetFrame(1, 0)) },
  ])("an incomplete body fails the message stream if $name", async ({ end }) => {
    const received = Promise.withResolvers<void>();
    const outcome = Promise.withResolvers<string>();
    const handlers: Handlers = {
      recordReadings: async (readings) => {
        const read = async (): Promise<string> => {
          for await (const _ of readings) received.resolve();
          return "as if it were all";
        };
        outcome.resolve(await read().catch(() => "not all"));
        return {};
      },
    };
    await using greenhouse = await startGreenhouse(handlers, {}, { http2 });
    using connection = await openFrames(greenhouse.address);
    const procedure = "/greenhouse.v1.GreenhouseService/RecordReadings";
    connection.send(headersFrame(1, grpcHeader(procedure)), dataFrame(1, emptyMessage));
    await within(received.promise, "the first message");
    end(connection);
    expect(await within(outcome.promise, "the end of the messages")).toBe("not all");
    expect(await greenhouse.completed(1)).toMatchObject({ httpStatus: 0, error: { code: Code.Canceled } });
  });

  test.each<{ name: string; end: (connection: FrameConnection, respond: () => void) => void }>([
    { name: "the client resets the stream", end: (connection) => connection.send(resetFrame(1, 8)) },
    { name: "the response ends", end: (_, respond) => respond() },
  ])("a complete but partly read body fails the message stream if $name", async ({ end }) => {
    const begun = Promise.withResolvers<() => Promise<{ done?: boolean | undefined }>>();
    const response = Promise.withResolvers<void>();
    const handlers: Handlers = {
      recordReadings: async (readings) => {
        const iterator = readings[Symbol.asyncIterator]();
        await iterator.next();
        begun.resolve(() => iterator.next());
        await response.promise;
        return {};
      },
    };
    await using greenhouse = await startGreenhouse(handlers, {}, { http2 });
    using connection = await openFrames(greenhouse.address);
    const procedure = "/greenhouse.v1.GreenhouseService/RecordReadings";
    connection.send(headersFrame(1, grpcHeader(procedure)), dataFrame(1, emptyMessage));
    const next = await within(begun.promise, "the first message");
    connection.send(dataFrame(1, emptyMessage), dataFrame(1, emptyMessage, frameFlag.endStream));
    await connection.settle();
    end(connection, response.resolve);
    await greenhouse.completed(1);
    await expect(within(next(), "the end of the messages")).rejects.toThrow("the client disconnected");
  });

  test("reports no fault if the client resets it before its body is read", async () => {
    const reached = Promise.withResolvers<void>();
    const response = Promise.withResolvers<object>();
    const faults: unknown[] = [];
    const handlers = { recordReadings: async () => (reached.resolve(), await response.promise) };
    await using greenhouse = await startGreenhouse(handlers, { onFault: (fault) => faults.push(fault) }, { http2 });
    using connection = await openFrames(greenhouse.address);
    const body = Array.from({ length: 10 }, () => dataFrame(1, Buffer.alloc(10_000)));
    connection.send(headersFrame(1, grpcHeader("/greenhouse.v1.GreenhouseService/RecordReadings")), ...body);
    await within(reached.promise, "the handler");
    connection.send(resetFrame(1, constants.NGHTTP2_NO_ERROR));
    await connection.settle();
    response.resolve({});
    expect([await greenhouse.completed(1), faults]).toMatchObject([{ httpStatus: 0 }, []]);
  });

  describe("request limits", () => {
    const greenhouse = shared(() =>
      startGreenhouse(
        { waterBed: ({ note }) => ({ liters: note.length }), getReading: () => never },
        { readMaxBytes: 100_000, limits: { urlBytes: 100, headerBytes: 2000, concurrentStreams: 2 } },
        { http2 },
      ),
    );
    test("refuse a large body with 413, and keep the connection open", async () => {
      using connection = await openHttp2(greenhouse.address);
      // Far more than HTTP/2's windows allow while the body is not read.
      for (let turn = 0; turn < 10; turn += 1) {
        const water = { httpMethod: "POST", path: "/beds/7:water", header: [json], body: Buffer.of() };
        const stream = connection.open(water);
        const response = readHttp2Response(stream);
        stream.end(Buffer.alloc(200_000, " "));
        expect((await response).httpStatus).toBe(413);
      }
      const body = Buffer.from('{"note":"four"}');
      const response = await connection.exchange({ httpMethod: "POST", path: "/beds/7:water", header: [json], body });
      expect(JSON.parse(response.body.toString())).toMatchObject({ liters: 4 });
    });

    // Two limits are enforced by the server. If the handler is mounted, the application's server enforces them.
    if (http2 === "mounted") return;
    test.each([
      { name: "accept header fields at the limit", bytes: 2000, want: "404" },
      { name: "refuse header fields one byte over the limit", bytes: 2001, want: "431" },
    ])("$name (status $want)", async ({ bytes, want }) => {
      using connection = await openFrames(greenhouse.address);
      const header = headerOfListBytes([...postHeader(), json], bytes);
      connection.send(headersFrame(1, header), dataFrame(1, Buffer.from("{}"), frameFlag.endStream));
      const end = await connection.readUntil(({ streamId }) => streamId === 1);
      expect(end && statusOf(new HpackDecoder(bytes), end)).toBe(want);
    });
  });

  describe("Expect: 100-continue", () => {
    const expecting: Field = ["expect", "100-continue"];
    const waterHeader = (...more: readonly Field[]): readonly Field[] => [
      [":path", "/beds/7:water"],
      ...postHeader(json, ...more).filter(([name]) => name !== ":path"),
    ];
    const openExpecting = async (greenhouse: TestGreenhouse, ...more: readonly Field[]): Promise<FrameConnection> => {
      const connection = await openFrames(greenhouse.address);
      connection.send(headersFrame(1, waterHeader(expecting, ...more)));
      return connection;
    };
    test("gets 100 after admission, and 200 after the body", async () => {
      await using greenhouse = await startGreenhouse({ waterBed: () => ({}) }, { admit: admitKey }, { http2 });
      using connection = await openExpecting(greenhouse, ["x-key", "k"]);
      const hpack = new HpackDecoder(10_000);
      const interim = await connection.readUntil(({ type }) => type === frameType.headers);
      expect(interim && statusOf(hpack, interim)).toBe("100");
      connection.send(dataFrame(1, Buffer.from("{}"), frameFlag.endStream));
      const response = await connection.readUntil(({ type }) => type === frameType.headers);
      expect(response && statusOf(hpack, response)).toBe("200");
    });

    test("is required for a 100 response", async () => {
      await using connection = await openGreenhouse(openFrames, { waterBed: ({ bed }) => ({ bed }) }, {}, { http2 });
      connection.send(headersFrame(1, waterHeader()));
      await expect.poll(() => connection.greenhouse.openRequests()).toBe(1);
      connection.send(dataFrame(1, Buffer.from("{}"), frameFlag.endStream));
      const response = await connection.readUntil(({ type }) => type === frameType.headers);
      expect(response && statusOf(new HpackDecoder(10_000), response)).toBe("200");
    });

    test.each([0, 8])("is ignored after a reset (code %i)", async (errorCode) => {
      await using connection = await openGreenhouse(openFrames, { waterBed: () => ({}) }, {}, { http2 });
      connection.send(headersFrame(1, waterHeader(expecting)), resetFrame(1, errorCode));
      sendUnaryCall(connection, 3, waterBedProcedure);
      expect(await connection.readEnd(3)).toMatchObject({ kind: "responded" });
    });

    test("gets 401 without 100 if the request is not admitted", async () => {
      await using greenhouse = await startGreenhouse({}, { admit: admitKey }, { http2 });
      using connection = await openExpecting(greenhouse);
      const first = await connection.readUntil(({ type }) => type === frameType.headers);
      expect(first && statusOf(new HpackDecoder(10_000), first)).toBe("401");
    });
  });

  test("returns GET's Content-Length for HEAD, without a body", async () => {
    await using greenhouse = await startGreenhouse({ getReading: ({ sensor }) => ({ sensor }) }, {}, { http2 });
    using connection = await openHttp2(greenhouse.address);
    const path = "/sensors/s/reading";
    const got = await connection.exchange({ httpMethod: "GET", path, header: [] });
    const headed = await connection.exchange({ httpMethod: "HEAD", path, header: [] });
    expect(headed).toMatchObject({ httpStatus: 200, body: Buffer.alloc(0) });
    expect(fieldValue(headed.header, "content-length")).toBe(String(got.body.byteLength));
  });

  test("shares the connection object with other streams on its connection", async () => {
    const connections: object[] = [];
    const admit: Admit = ({ connection }) => void connections.push(connection);
    await using greenhouse = await startGreenhouse({ waterBed: () => ({}) }, { admit }, { http2 });
    using first = await openFrames(greenhouse.address);
    using second = await openFrames(greenhouse.address);
    for (const [connection, streamId] of [
      [first, 1],
      [second, 1],
      [first, 3],
    ] as const) {
      sendUnaryCall(connection, streamId, waterBedProcedure);
      expect(await connection.readEnd(streamId)).toMatchObject({ kind: "responded" });
    }
    expect(connections[2]).toBe(connections[0]);
    expect(connections[1]).not.toBe(connections[0]);
  });

  test("a bidi call that the handler ends before its requests succeeds in grpc-js", async () => {
    const controlClimate = async function* (): AsyncGenerator<object> {
      await clientBlocked();
      for (let sent = 0; sent < 100; sent += 1) yield {};
    };
    await using greenhouse = await startGreenhouse({ controlClimate }, {}, { http2 });
    const client = new Client(`127.0.0.1:${greenhouse.address.port}`, credentials.createInsecure());
    onTestFinished(() => client.close());
    const call = client.makeBidiStreamRequest("/greenhouse.v1.GreenhouseService/ControlClimate", asIs, asIs);
    for (let i = 0; i < 40; i++) call.write(Buffer.alloc(50_000));
    let messages = 0;
    for await (const _ of call) {
      messages += 1;
      await nextTurn();
    }
    expect(messages).toBe(100);
  });
});

test.each([
  { name: "gets no window after a trailer section", type: "application/grpc", want: false },
  { name: "gets window after a response without a trailer section", type: "application/connect+proto", want: true },
])("an HTTP/2 stream in node:http2 $name", async ({ type, want }) => {
  const handlers: Handlers = { recordReadings: async () => ({}) };
  await using connection = await openGreenhouse(openFrames, handlers, {}, { http2: "mounted" });
  const header = grpcHeader("/greenhouse.v1.GreenhouseService/RecordReadings").slice(0, 4);
  connection.send(headersFrame(1, [...header, ["content-type", type]]));
  expect(await connection.readEnd(1)).toMatchObject({ kind: "responded" });
  const credited: number[] = [];
  connection.send(...[1, 2, 3].map(() => dataFrame(1, Buffer.alloc(16_000))));
  // nghttp2 sends the first PING before the window.
  for (const ping of [pingFrame, pingFrame]) {
    connection.send(ping);
    await connection.readUntil(
      (one) => (one.type === frameType.windowUpdate && credited.push(one.streamId), one.type === frameType.ping),
    );
  }
  expect(credited.includes(1)).toBe(want);
  connection.send(dataFrame(1, Buffer.of(), frameFlag.endStream));
  await expect.poll(() => connection.greenhouse.openRequests()).toBe(0);
});
