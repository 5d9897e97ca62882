import { createServer } from "node:http";
import { Code } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
// oxfmt-ignore
import { createIssuedCertificate, dataFrame, encodeEnvelope, frameFlag, frameType, headersFrame, type Http1Connection,
  openFrames, openHttp1, startGreenhouse, startOnLoopback, type TestGreenhouse, waterBedProcedure, within
} from "@protoport/testing";
import { settingFrame, windowUpdateFrame } from "../../../testing/src/http2/http2-requests.ts";

// A client that closes its side after its request, by FIN as `nc -N` does, or under TLS by close_notify, may still
// read, or be disconnected. Sending something shows which: a PING, an interim response or a part of the response. If
// nothing can be sent for a while, the call is cancelled.

const { authority, ...certificate } = createIssuedCertificate("localhost");
const tls = { ca: authority, servername: "localhost" };
/** More than the system and an HTTP/2 window buffer. */
const longNote = "orders".repeat(500_000);
let greenhouse: TestGreenhouse;
let called: PromiseWithResolvers<void>;
let response: PromiseWithResolvers<{ note: string }>;
let aborted: PromiseWithResolvers<unknown>;
/** The stream's next messages. */
let readings: PromiseWithResolvers<{ sensor: string }>[];

beforeEach(async () => {
  called = Promise.withResolvers();
  response = Promise.withResolvers();
  aborted = Promise.withResolvers();
  readings = Array.from({ length: 3 }, () => Promise.withResolvers());
  const noteEnd = (signal: AbortSignal): void => {
    signal.addEventListener("abort", () => aborted.resolve(signal.reason));
    called.resolve();
  };
  greenhouse = await startGreenhouse(
    {
      waterBed: async ({ note }, { signal }) => (noteEnd(signal), note === "" ? await response.promise : { note }),
      async *watchReadings(_, { signal }) {
        noteEnd(signal);
        for (const { promise } of readings) yield await promise;
      },
    },
    // A connection is checked four times within its shortest timeout.
    { limits: { requestTimeoutMs: 800 } },
    { tls: certificate, allowCleartext: true },
  );
});
afterEach(() => greenhouse[Symbol.asyncDispose]());

function requestOf(note: string, httpVersion = "1.1"): string {
  const body = JSON.stringify({ note });
  const fields = `host: localhost\r\ncontent-type: application/json\r\ncontent-length: ${String(body.length)}`;
  return `POST ${waterBedProcedure} HTTP/${httpVersion}\r\n${fields}\r\n\r\n${body}`;
}

/** The reading stream over Connect, with a five-byte envelope before each message. */
function watchRequest(): Buffer {
  const fields = "host: localhost\r\ncontent-type: application/connect+json\r\ncontent-length: 7";
  const head = `POST /greenhouse.v1.GreenhouseService/WatchReadings HTTP/1.1\r\n${fields}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), encodeEnvelope(0, Buffer.from("{}"))]);
}

/** Sends requests, ends the client's side, and waits until the first request has reached its handler. */
async function sendAndEnd(connection: Http1Connection, bytes: string | Uint8Array): Promise<void> {
  connection.socket.end(bytes);
  await within(called.promise, "the handler");
}

/** Waits until the server has sent `text`. */
async function seen({ socket }: Http1Connection, text: string): Promise<void> {
  let all = "";
  await within(
    new Promise<void>((resolve) => {
      socket.on("data", (bytes: Buffer) => {
        all += bytes.toString("latin1");
        if (all.includes(text)) resolve();
      });
    }),
    text,
  );
}

describe.each([
  { name: "", options: undefined },
  { name: " over TLS", options: tls },
])("a half-closed client with one complete request$name", ({ options }) => {
  test("gets its response before the connection closes", async () => {
    using connection = await openHttp1(greenhouse.address, options);
    await sendAndEnd(connection, requestOf(longNote));
    const { httpStatus, interim, body } = await connection.readResponse();
    expect({ httpStatus, interim }).toEqual({ httpStatus: 200, interim: [] });
    expect(body.byteLength).toBeGreaterThan(longNote.length);
    expect(await connection.atEnd()).toBe(true);
  });

  test("gets 100 Continue as a probe until its response is ready", async () => {
    using connection = await openHttp1(greenhouse.address, options);
    const interim = seen(connection, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n");
    await sendAndEnd(connection, requestOf(""));
    await interim;
    response.resolve({ note: longNote });
    const { httpStatus, body } = await connection.readResponse();
    expect(httpStatus).toBe(200);
    expect(body.byteLength).toBeGreaterThan(longNote.length);
    expect(await connection.atEnd()).toBe(true);
  });

  test("has its call cancelled once a probe fails", async () => {
    using connection = await openHttp1(greenhouse.address, options);
    connection.write(requestOf(""));
    await within(called.promise, "the handler");
    connection.socket.destroy();
    expect(await within(aborted.promise, "the end of the call")).toMatchObject({ code: Code.Canceled });
    expect(await greenhouse.completed(1)).toMatchObject({ httpStatus: 0, error: { code: Code.Canceled } });
  });
});

describe("a half-closed client", () => {
  test("gets the responses to all pipelined requests", async () => {
    using connection = await openHttp1(greenhouse.address);
    await sendAndEnd(connection, requestOf("first") + requestOf("") + requestOf("third"));
    response.resolve({ note: "second" });
    const notes: unknown[] = [];
    for (let i = 0; i < 3; i++) notes.push(JSON.parse(String((await connection.readResponse()).body)));
    expect(notes).toEqual([{ note: "first" }, { note: "second" }, { note: "third" }]);
    expect(await connection.atEnd()).toBe(true);
  });

  test.each([
    { name: "an incomplete header", behind: "POST / HTT" },
    { name: "an incomplete body", behind: requestOf("third").slice(0, -1) },
  ])("gets 400 for $name after earlier responses", async ({ behind }) => {
    using connection = await openHttp1(greenhouse.address);
    await sendAndEnd(connection, requestOf("") + behind);
    response.resolve({ note: "first" });
    expect((await connection.readResponse()).httpStatus).toBe(200);
    expect([(await connection.readResponse()).httpStatus, await connection.atEnd()]).toEqual([400, true]);
  });

  test("gets no interim response over HTTP/1.0", async () => {
    using connection = await openHttp1(greenhouse.address);
    using other = await openHttp1(greenhouse.address);
    connection.socket.end(requestOf("", "1.0"));
    // In the meantime, another client is probed.
    const interim = seen(other, "100 Continue");
    other.socket.end(requestOf(""));
    await interim;
    response.resolve({ note: "n" });
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 200, interim: [] });
    expect(await connection.atEnd()).toBe(true);
  });

  test("gets 499 over HTTP/1.0 when its call times out", async () => {
    using connection = await openHttp1(greenhouse.address);
    await sendAndEnd(connection, requestOf("", "1.0"));
    expect(await within(aborted.promise, "the end of the call")).toMatchObject({ code: Code.Canceled });
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 499, interim: [] });
    expect(await connection.atEnd()).toBe(true);
  });

  test("gets all messages of a stream that starts late", async () => {
    using connection = await openHttp1(greenhouse.address);
    const interim = seen(connection, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n");
    await sendAndEnd(connection, watchRequest());
    await interim;
    for (const [i, reading] of readings.entries()) reading.resolve({ sensor: `sensor ${String(i)}` });
    const { httpStatus, body } = await connection.readResponse();
    expect([httpStatus, String(body)]).toEqual([200, expect.stringMatching(/sensor 0.*sensor 1.*sensor 2/)]);
    expect(await connection.atEnd()).toBe(true);
  });

  test("is disconnected if its stream pauses for too long", async () => {
    using connection = await openHttp1(greenhouse.address);
    const begun = seen(connection, "sensor 0");
    await sendAndEnd(connection, watchRequest());
    readings[0]?.resolve({ sensor: "sensor 0" });
    await begun;
    expect(await within(aborted.promise, "the end of the call")).toMatchObject({ code: Code.Canceled });
    await expect(connection.readResponse()).rejects.toThrow();
  });

  test("has its stream cancelled when it disconnects", async () => {
    using connection = await openHttp1(greenhouse.address);
    const begun = seen(connection, "sensor 0");
    connection.write(watchRequest());
    readings[0]?.resolve({ sensor: "sensor 0" });
    await begun;
    connection.socket.destroy();
    // Larger than the system's buffers, so that the response cannot complete without a client that reads.
    for (const reading of readings.slice(1)) reading.resolve({ sensor: longNote });
    expect(await within(aborted.promise, "the end of the call")).toMatchObject({ code: Code.Canceled });
  });
});

test("each timeout check probes a half-closed client", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  using connection = await openHttp1(greenhouse.address);
  const interim = seen(connection, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n");
  await sendAndEnd(connection, requestOf(""));
  await interim;
  response.resolve({ note: "n" });
  expect((await connection.readResponse()).httpStatus).toBe(200);
});

describe("without checks of the timeouts", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval"] }));
  afterEach(() => void vi.useRealTimers());

  test("a disconnected client's call is cancelled, and a half-closed client gets its response", async () => {
    using reading = await openHttp1(greenhouse.address);
    using gone = await openHttp1(greenhouse.address);
    const interim = seen(reading, "100 Continue");
    await sendAndEnd(reading, requestOf(""));
    await interim;
    called = Promise.withResolvers();
    gone.write(requestOf(""));
    await within(called.promise, "the second handler");
    gone.socket.destroy();
    expect(await within(aborted.promise, "the end of the call")).toMatchObject({ code: Code.Canceled });
    response.resolve({ note: "n" });
    expect(await reading.readResponse()).toMatchObject({ httpStatus: 200 });
  });

  test("a half-closed client gets four probes in the first second", async () => {
    using connection = await openHttp1(greenhouse.address);
    vi.useFakeTimers({ toFake: ["setInterval", "setTimeout"] });
    const interim = seen(connection, "100 Continue");
    await sendAndEnd(connection, requestOf(""));
    await interim;
    vi.advanceTimersByTime(5000);
    response.resolve({ note: "n" });
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 200, interim: [100, 100, 100, 100] });
  });
});

test("node:http treats a half-closed client as disconnected", async () => {
  await using server = await startOnLoopback(createServer(greenhouse.gateway.handler));
  using connection = await openHttp1(server.address);
  await sendAndEnd(connection, requestOf(""));
  expect(await within(aborted.promise, "the end of the call")).toMatchObject({ code: Code.Canceled });
  expect(await connection.atEnd()).toBe(true);
});

/** Opens an HTTP/2 connection with a call whose handler has begun. */
async function openCall(options: Parameters<typeof openFrames>[1]): ReturnType<typeof openFrames> {
  const connection = await openFrames(greenhouse.address, options);
  const maxWindow = 2 ** 31 - 1;
  connection.send(settingFrame(4, maxWindow), windowUpdateFrame(0, maxWindow - 65_535));
  // oxfmt-ignore
  const header = [
    ...([[":method", "POST"], [":path", waterBedProcedure], [":scheme", options?.tls ? "https" : "http"]] as const),
    ...([[":authority", "localhost"], ["content-type", "application/grpc"], ["te", "trailers"]] as const),
  ];
  connection.send(headersFrame(1, header), dataFrame(1, encodeEnvelope(0, Buffer.of()), frameFlag.endStream));
  await within(called.promise, "the handler");
  return connection;
}

const http2Ways = [
  { name: "on HTTP/2", options: {} },
  { name: "on HTTP/2 over TLS", options: { tls } },
];

test.each(http2Ways)("a client that half-closes after a request $name gets the complete response", async (way) => {
  using connection = await openCall(way.options);
  connection.socket.end();
  // The server's PING shows that it has detected the half-close.
  await connection.readUntil(({ type, flags }) => type === frameType.ping && flags === 0);
  response.resolve({ note: longNote });
  let bytes = 0;
  await connection.readUntil(({ type, payload }) => {
    if (type === frameType.data) bytes += payload.byteLength;
    return type === frameType.headers && bytes > 0;
  });
  expect(bytes).toBeGreaterThan(longNote.length);
  expect(await connection.readUntil(() => false)).toBeUndefined();
});

test.each(http2Ways)("$name, the call of a disconnected client is cancelled", async (way) => {
  using connection = await openCall(way.options);
  // The client has nothing left to read. Otherwise its system would reset the connection, which the server detects
  // immediately.
  await connection.readUntil(({ type, flags }) => type === frameType.settings && flags === frameFlag.ack);
  connection.socket.destroy();
  expect(await within(aborted.promise, "the end of the call")).toMatchObject({ code: Code.Canceled });
  const want = { httpStatus: 0, error: { code: Code.Canceled }, peer: { address: "127.0.0.1" } };
  expect(await greenhouse.completed(1)).toMatchObject(want);
});
