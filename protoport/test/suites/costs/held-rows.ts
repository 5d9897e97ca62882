import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { type ClientHttp2Stream, connect } from "node:http2";
import { brotliCompressSync, constants } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import {
  ReadingSchema,
  WatchReadingsRequestSchema,
  WaterBedRequestSchema,
} from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { emptyMessage, grpcHeader } from "../../../testing/src/http/grpc-frames.ts";
// oxfmt-ignore
import { bodyFrames, endlessBlock, filled, filledRequest, last, openEach, sendInWaves, streamIds, times
} from "../../support/costs/attacks.ts";
import type { MeasuredServer, ServerName } from "../../support/costs/measured-server.ts";
import { openRaw, openRawHttp2, openRawTls, type RawClient } from "../../support/costs/raw-client.ts";
// oxfmt-ignore
import { type Address, dataFrame, encodeEnvelope, type Field, frame, type Frame, frameFlag, frameType, headersFrame,
  resetFrame, within } from "@protoport/testing";
import { getHeader, postHeader, settingFrame } from "../../../testing/src/http2/http2-requests.ts";
import { authorized, bearer, guardedCall } from "../../support/costs/guarded-gateway.ts";

/** Memory that clients can make the server hold by one kind of action. */
export interface HeldRow {
  /** The action. protoport/SECURITY.md lists the most expensive ones. */
  readonly what: string;
  /** The memory limit: bytes, KiB or MiB "a connection", "a stream", "a byte" or "in all". */
  readonly atMost: string;
  /** Whether the memory is outside the heap and buffers, and only shows in the process's memory. */
  readonly native?: true;
  /** The first measurement's number of repetitions. The second measurement has four times as many. */
  readonly n: number;
  readonly run: (server: MeasuredServer, n: number) => Promise<Held>;
}

/** An action in progress. */
export interface Held {
  readonly clients: readonly RawClient[];
  /** How many connections, streams or bytes. */
  readonly units: number;
}

type Run = HeldRow["run"];
type FramesOf = (streamId: number) => readonly Frame[];

function connections(
  open: (address: Address) => Promise<RawClient>,
  say?: (client: RawClient) => void,
  name: ServerName = "guarded",
): Run {
  return async ({ addresses }, n) => ({ clients: await openEach(n, open, addresses[name], say), units: n });
}

interface StreamsOptions {
  /** Defaults to the guarded gateway. */
  readonly server?: ServerName;
  /** Whether the client reads responses. Defaults to true. */
  readonly reads?: boolean;
  /** The frames that are sent before the first stream. */
  readonly opening?: readonly Frame[];
  /** How many streams are opened before waiting for the server. */
  readonly waveStreams?: number;
  /** The unit for which bytes are counted. Defaults to the connection. */
  readonly per?: "connection" | "stream";
}

/** Opens one HTTP/2 connection, which sends something on many streams. */
function streams(framesOf: FramesOf, options: StreamsOptions = {}): Run {
  const { server: name = "guarded", reads = true, opening = [], waveStreams, per = "connection" } = options;
  return async (server, n) => {
    const client = await openRawHttp2(server.addresses[name]);
    if (reads) client.drain();
    client.send(...opening);
    await sendInWaves(server, client, streamIds(n), framesOf, waveStreams);
    return { clients: [client], units: per === "stream" ? n : 1 };
  };
}

function frames(framesOf: (n: number) => readonly Frame[]): Run {
  return async ({ addresses }, n) => {
    const client = await openRawHttp2(addresses.guarded);
    client.send(...framesOf(n));
    return { clients: [client], units: 1 };
  };
}

function pipelined(name: ServerName, line: string): Run {
  return async ({ addresses }, n) => {
    const client = await openRaw(addresses[name]);
    client.write(filledRequest(line).repeat(n));
    return { clients: [client], units: 1 };
  };
}

async function untilSent(server: MeasuredServer, { socket }: RawClient): Promise<void> {
  for (let before = -1, still = 0; still < 3; before = socket.bytesWritten) {
    await server.ask("quiet");
    still = socket.bytesWritten === before ? still + 1 : 0;
  }
}

/** Opens ControlClimate streams that wait for their first reading, with a client that respects the windows. */
async function openClimates({ socket }: RawClient, n: number): Promise<ClientHttp2Stream[]> {
  const session = connect("http://greenhouse", { createConnection: () => socket }).on("error", () => {});
  await within(once(session, "remoteSettings"), "the server's SETTINGS");
  const header = grpcHeader("/greenhouse.v1.GreenhouseService/ControlClimate");
  return streamIds(n).map((id) => {
    const stream = session.request(Object.fromEntries(filled(header, id)));
    return stream.on("error", () => {}).resume();
  });
}

/** The header for a greenhouse call, with the largest allowed size. */
const filledCall = (id: number, rpc: string, ...more: readonly Field[]): Frame =>
  headersFrame(id, filled([...grpcHeader(`/greenhouse.v1.GreenhouseService/${rpc}`), ...more], id));
const healthCall = (id: number, rpc: string): Frame =>
  headersFrame(id, filled(grpcHeader(`/grpc.health.v1.Health/${rpc}`), id));

// A nearly complete 16 KiB handshake record (RFC 8446 §5.1).
const clientHelloBegin = Buffer.concat([Buffer.from([22, 3, 1, 0x40, 0, 1, 0, 0x3f, 0xfc]), Buffer.alloc(16_000)]);

/** Maximum number of messages that can be requested. */
const endless = 2 ** 31 - 1;
const text16k = "s".repeat(16_000);
const text100k = "s".repeat(100_000);
const reading = encodeEnvelope(0, toBinary(ReadingSchema, create(ReadingSchema, { sensor: text16k })));
const smallReading = encodeEnvelope(0, toBinary(ReadingSchema, create(ReadingSchema, { sensor: "s".repeat(1_000) })));
const frameOfReadings = Buffer.concat(Array.from({ length: 16 }, () => smallReading));
const manyReadings = Buffer.concat(Array.from({ length: 240 }, () => smallReading));
const twoMessages = Buffer.concat([emptyMessage, emptyMessage]);
/** An unknown frame type, which must be ignored (RFC 9113 §4.1). */
const unknownType = 0x16;
const longNote = encodeEnvelope(0, toBinary(WaterBedRequestSchema, create(WaterBedRequestSchema, { note: text100k })));
const watch = create(WatchReadingsRequestSchema, { sensor: text16k, count: endless });
const endlessWatch = encodeEnvelope(0, toBinary(WatchReadingsRequestSchema, watch));
const shortNote: FramesOf = (id) => {
  const path = "/greenhouse.v1.GreenhouseService/WaterBed";
  const header = postHeader(["content-type", "application/json"]).map(([name, value]): Field => [
    name,
    name === ":path" ? path : value,
  ]);
  return [headersFrame(id, filled(header, id)), dataFrame(id, Buffer.from(`{"note":"${"s".repeat(1_000)}"}`), last)];
};
const trailerRequest = create(WaterBedRequestSchema, { note: "with a trailer" });
const trailerMessage = encodeEnvelope(0, toBinary(WaterBedRequestSchema, trailerRequest));
const trailerNote: FramesOf = (id) => [filledCall(id, "WaterBed"), ...bodyFrames(id, trailerMessage, 16_384, last)];
const longNotes: FramesOf = (id) => [filledCall(id, "WaterBed"), ...bodyFrames(id, longNote, 16_384, last)];

/** Sends requests on one stream after another, whose windows do not allow a response. */
const withoutWindow: StreamsOptions = { opening: [settingFrame(4, 0)], waveStreams: 1, per: "stream" };

/** Opens clients, each of which watches health on 200 streams. */
function watchers(message: Buffer): Run {
  return async (server, n) => {
    const clients = (await openEach(n / 200, openRawHttp2, server.addresses.guarded)).map((client) => client.drain());
    const watching: FramesOf = (id) => [healthCall(id, "Watch"), ...bodyFrames(id, message, 16_384, last)];
    for (const client of clients) await sendInWaves(server, client, streamIds(200), watching, 10);
    return { clients, units: 1 };
  };
}

/** Sends two small messages to each stream, and unknown frames of `sizes` bytes in the same write. */
function takenSlowly(sizes: readonly number[]): Run {
  return async (server, n) => {
    const client = (await openRawHttp2(server.addresses.greenhouse)).drain();
    const ids = streamIds(n);
    await sendInWaves(server, client, ids, (id) => [filledCall(id, "ControlClimate")]);
    // Each handler takes its first message, and leaves the second one in the server's read buffer.
    for (const id of ids) {
      client.send(dataFrame(id, twoMessages), ...sizes.map((bytes) => frame(unknownType, 0, 0, Buffer.alloc(bytes))));
      await server.ask("quiet");
    }
    return { clients: [client], units: n };
  };
}

/** Sends a request with these header lines, and reads the response. */
function askOnce(lines: string): (client: RawClient) => void {
  return (client) => client.drain().write(`GET / HTTP/1.1\r\nhost: x\r\n${lines}\r\n`);
}

function watchEvents(sensor: string, count: number): (client: RawClient) => void {
  const path = `/sensors/${sensor}/readings?count=${count}`;
  return (client) => client.write(filledRequest(`GET ${path}`, ["accept", "text/event-stream"]));
}

/** Sends a message that repeats an unknown field, number 15, with a one-byte value. */
async function messageOfUnknownFields({ addresses }: MeasuredServer, n: number): Promise<Held> {
  const client = (await openRaw(addresses.greenhouse)).drain();
  const lines = ["host: x", "content-type: application/proto", `content-length: ${n}`];
  client.write(`POST /greenhouse.v1.GreenhouseService/GetReading HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`);
  client.write(Buffer.alloc(n, Buffer.from([0x78, 0x01])));
  return { clients: [client], units: n };
}

/** The beginning of a stream over REST. */
function encodedReadings(id: number, coding: string, body: Buffer): Frame[] {
  const header = [...postHeader(["content-encoding", coding])].map(([name, value]): Field => [
    name,
    name === ":path" ? "/readings" : value,
  ]);
  return [headersFrame(id, filled(header, id)), ...bodyFrames(id, body)];
}

/** Compressed empty lines. The first ones compress poorly, so that the total ratio is below 1,032. */
const randomLines = randomBytes(120_000).map((byte) => (byte % 2 === 0 ? 0x20 : 0x0a));
const emptyLines = Buffer.concat([randomLines, Buffer.alloc(16_600_000, "\n")]);

/** An unfinished body that fills br's largest window (RFC 7932 §9.1). */
const fullBrotliWindow = brotliCompressSync(emptyLines, {
  finishFlush: constants.BROTLI_OPERATION_FLUSH,
  params: { [constants.BROTLI_PARAM_LGWIN]: 24, [constants.BROTLI_PARAM_QUALITY]: 5 },
});

/** A body that fills an 8 MiB window: an RFC 8878 §3.1.1 frame with raw line feeds, and blocks that repeat one. */
const fullZstdWindow = Buffer.concat([
  Buffer.from("28b52ffd0068", "hex"),
  zstdBlock(0, 8_000, Buffer.alloc(8_000, "\n")),
  ...Array.from({ length: 63 }, () => zstdBlock(1, 128 * 1024, Buffer.from("\n"))),
]);

/** Returns a §3.1.1.2 block that is not the last one, with raw bytes or one repeated byte. */
function zstdBlock(type: 0 | 1, bytes: number, content: Buffer): Buffer {
  const header = Buffer.alloc(3);
  header.writeUIntLE((bytes << 3) | (type << 1), 0, 3);
  return Buffer.concat([header, content]);
}

/** Literals with incremental indexing (RFC 7541 §6.2.1), with 34 bytes each as §4.1 counts them. */
const smallFields = Buffer.from(Array.from({ length: 120 }, (_, i) => [0x40, 1, 0x61 + (i % 26), 1, i]).flat());

// oxfmt-ignore
export const heldRows: readonly HeldRow[] = [
  { what: "an idle HTTP/1.1 connection", atMost: "8 KiB a connection", n: 50, run: connections(openRaw) },
  { what: "an idle HTTP/2 connection", atMost: "32 KiB a connection", n: 50, run: connections(openRawHttp2) },
  { what: "an idle TLS connection", atMost: "128 KiB a connection", native: true, n: 200,
    run: connections(openRawTls, undefined, "guardedOverTls") },
  { what: "an incomplete TLS handshake", atMost: "192 KiB a connection", native: true, n: 200,
    run: connections(openRaw, (client) => client.write(clientHelloBegin), "guardedOverTls") },
  { what: "an incomplete HTTP/1.1 header", atMost: "32 KiB a connection", n: 25,
    run: connections(openRaw, (client) => client.write(`GET / HTTP/1.1\r\nx: ${"x".repeat(15_000)}`)) },
  { what: "an idle HTTP/1.1 connection after 15 KB of header fields", atMost: "8 KiB a connection", n: 50,
    run: connections(openRaw, askOnce(`authorization: Bearer token\r\nx: ${"x".repeat(15_000)}\r\n`)) },
  { what: "an idle HTTP/1.1 connection after a token of 8 KB", atMost: "8 KiB a connection", n: 50,
    run: connections(openRaw, askOnce(`authorization: Bearer ${"t".repeat(8_000)}\r\n`)) },
  { what: "an idle HTTP/1.1 connection after a cached token of 4 KB", atMost: "24 KiB a connection", n: 50,
    run: connections(openRaw, askOnce(`authorization: Bearer ${"t".repeat(4_000)}\r\n`)) },
  { what: "an idle HTTP/1.1 connection after 580 small header fields", atMost: "8 KiB a connection", n: 50,
    run: connections(openRaw, askOnce("ab:cd\r\n".repeat(580))) },
  { what: "an incomplete HTTP/2 header block", atMost: "128 KiB a connection", n: 25,
    run: connections(openRawHttp2, (client) => client.send(...endlessBlock(1, Buffer.alloc(60_000)))) },
  { what: "the first bytes of an HTTP/2 header block", atMost: "32 KiB a connection", n: 25,
    run: connections(openRawHttp2, (client) => client.send(...endlessBlock(1, Buffer.alloc(20)))) },
  { what: "the first bytes of an HTTP/2 frame", atMost: "32 KiB a connection", n: 25,
    run: connections(openRawHttp2, (client) => client.write(Buffer.from([0, 0, 100, frameType.headers, 0, 0, 0, 0, 1])),
    ) },
  { what: "an HPACK table full of small fields", atMost: "48 KiB a connection", n: 25,
    run: connections(openRawHttp2, (client) =>
      client.drain().send(frame(frameType.headers, frameFlag.endHeaders | last, 1, smallFields)),
    ) },
  { what: "different credentials and header fields in each request", atMost: "2 MiB in all", n: 8_000,
    run: streams((id) => {
      const agent = ["user-agent", `client-${id}`.padEnd(500, "x")] as const;
      return [headersFrame(id, [...guardedCall, bearer(`token-${id}`.padEnd(500, "x")), agent], last)];
    }) },
  { what: "unread refusals over HTTP/2", atMost: "2 MiB a connection", n: 10_000,
    run: streams((id) => [headersFrame(id, guardedCall, last)], { reads: false }) },
  { what: "small unread HTTP/2 responses", atMost: "2 MiB a connection", n: 1_000,
    run: streams((id) => [healthCall(id, "Check"), dataFrame(id, emptyMessage, last)], { reads: false }) },
  { what: "small HTTP/2 responses, requested one by one, blocked by flow control", atMost: "8 KiB a stream", n: 50,
    run: streams(shortNote, { server: "greenhouse", ...withoutWindow }) },
  { what: "small HTTP/2 responses with trailers, blocked by flow control", atMost: "8 KiB a stream", n: 50,
    run: streams(trailerNote, { server: "greenhouse", ...withoutWindow }) },
  { what: "refusals over HTTP/2, blocked by flow control", atMost: "8 KiB a stream", n: 50,
    run: streams((id) => [headersFrame(id, filled(getHeader, id), last)], withoutWindow) },
  { what: "large unread HTTP/2 responses", atMost: "20 MiB a connection", n: 60,
    run: streams(longNotes, { server: "greenhouse", reads: false, opening: [settingFrame(4, 2 ** 31 - 1)] }) },
  { what: "large unread responses on many connections", atMost: "320 MiB in all", n: 6,
    run: async ({ addresses }, n) => {
      const ask = (client: RawClient): void => client.send(...streamIds(200).flatMap(longNotes));
      return { clients: await openEach(n, openRawHttp2, addresses.greenhouse, ask), units: 1 };
    } },
  { what: "an unread server stream", atMost: "256 KiB a stream", n: 16,
    run: streams((id) => [filledCall(id, "WatchReadings"), ...bodyFrames(id, endlessWatch, 16_384, last)], {
      server: "greenhouse",
      reads: false,
      per: "stream",
    }) },
  // The second measurement has 1,000 connections.
  { what: "unread Server-Sent Events over HTTP/1.1", atMost: "256 KiB a connection", n: 250,
    run: connections(openRaw, watchEvents("s".repeat(4_000), endless), "greenhouse") },
  { what: "unread Server-Sent Events over HTTP/1.1, sent one by one", atMost: "256 KiB a connection", n: 4,
    run: connections(openRaw, watchEvents(`one-by-one-${"s".repeat(1_000)}`, endless), "greenhouse") },
  { what: "Server-Sent Events over HTTP/1.1 before the first event", atMost: "48 KiB a connection", n: 50,
    run: connections(openRaw, watchEvents("later", 0), "greenhouse") },
  { what: "unread refusals over HTTP/1.1", atMost: "1 MiB a connection", n: 2_000, run: pipelined("guarded", "GET /") },
  { what: "HTTP/1.1 requests pipelined behind a slow call", atMost: "1 MiB a connection", n: 1_000,
    run: pipelined("greenhouse", "GET /sensors/x/reading") },
  { what: "slow HTTP/2 calls", atMost: "24 KiB a stream", n: 200, run: async (server, n) => {
      const clients = (await openEach(n / 200, openRawHttp2, server.addresses.greenhouse)).map((client) =>
        client.drain(),
      );
      for (const client of clients) {
        await sendInWaves(server, client, streamIds(200), (id) => [
          filledCall(id, "GetReading"),
          dataFrame(id, emptyMessage, last),
        ]);
      }
      return { clients, units: n };
    } },
  { what: "bodies of refused requests", atMost: "1.5 MiB a connection", n: 60,
    run: streams((id) => [headersFrame(id, filled(guardedCall, id)), ...bodyFrames(id, Buffer.alloc(16_000))]) },
  { what: "bodies that arrive while the credential is checked", atMost: "8 MiB a connection", n: 64,
    run: streams((id) => [filledCall(id, "WaterBed", ["wait", "1"]), ...bodyFrames(id, Buffer.alloc(16_000))], {
      server: "greenhouse",
    }) },
  { what: "such bodies in pieces of 64 bytes", atMost: "2 MiB a connection", n: 3,
    run: streams((id) => [filledCall(id, "WaterBed", ["wait", "1"]), ...bodyFrames(id, Buffer.alloc(85_000), 64)], {
      server: "greenhouse",
    }) },
  { what: "incomplete bodies of unary calls", atMost: "160 KiB a stream", n: 60, run: streams(
      (id) => [headersFrame(id, filled([...guardedCall, authorized], id)), ...bodyFrames(id, Buffer.alloc(60_000))],
      { per: "stream" },
    ) },
  { what: "bodies of unary calls in pieces of a few bytes", atMost: "160 KiB a stream", n: 4, run: streams(
      (id) => [headersFrame(id, filled([...guardedCall, authorized], id)), ...bodyFrames(id, Buffer.alloc(60_000), 9)],
      { per: "stream" },
    ) },
  { what: "an HTTP/1.1 body in pieces of one byte", atMost: "4 MiB a connection", n: 50_000, run: async (server, n) => {
      const client = (await openRaw(server.addresses.greenhouse)).drain();
      client.write(
        "POST /beds/7:water HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
      );
      for (let sent = 0; sent < n; sent += 10_000) {
        client.write("1\r\n \r\n".repeat(10_000));
        await server.ask("quiet");
      }
      return { clients: [client], units: 1 };
    } },
  { what: "a message of unknown two-byte fields, while its handler runs", atMost: "85 bytes a byte", n: 512 * 1024,
    run: messageOfUnknownFields },
  { what: "a message of a stream that arrives slowly", atMost: "8 MiB a stream", n: 1_000_000,
    run: async (server, n) => {
      const client = (await openRawHttp2(server.addresses.greenhouse)).drain();
      client.send(filledCall(1, "RecordReadings"));
      const body = encodeEnvelope(0, Buffer.alloc(n), 4 * 1024 * 1024);
      // Sends as much as the flow-control windows allow. The server opens the windows again when it is idle.
      for (let from = 0; from < n; from += 60_000) {
        client.send(...bodyFrames(1, body.subarray(from, from + 60_000), 64));
        await server.ask("quiet");
      }
      return { clients: [client], units: 1 };
    } },
  { what: "an incomplete line of a REST stream", atMost: "4.5 MiB a stream", n: 1_000_000, run: async (server, n) => {
      const client = (await openRaw(server.addresses.greenhouse)).drain();
      client.write("POST /readings HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
      for (let sent = 0; sent < n; sent += 10_000) {
        client.write("2710\r\n".concat("x".repeat(10_000), "\r\n"));
        await server.ask("quiet");
      }
      return { clients: [client], units: 1 };
    } },
  {
    what: "incomplete br bodies of REST streams",
    atMost: "384 MiB in all",
    native: true,
    // The second measurement has 64 streams, whose windows would need 1 GiB.
    n: 16,
    run: streams((id) => encodedReadings(id, "br", fullBrotliWindow), { server: "greenhouse" }),
  },
  { what: "incomplete zstd bodies of REST streams", atMost: "384 MiB in all", native: true, n: 32,
    run: streams((id) => encodedReadings(id, "zstd", fullZstdWindow), { server: "greenhouse" }) },
  { what: "an announced message of a stream that does not arrive", atMost: "64 KiB a stream", n: 60,
    run: streams((id) => [filledCall(id, "RecordReadings"), dataFrame(id, encodeEnvelope(0, Buffer.of(), 4_000_000))], {
      server: "greenhouse",
      per: "stream",
    }) },
  { what: "messages of a stream that the handler does not read", atMost: "1 MiB a stream", n: 1,
    run: streams((id) => [filledCall(id, "ControlClimate"), ...times(12, () => dataFrame(id, reading))], {
      server: "greenhouse",
      per: "stream",
    }) },
  { what: "small messages between large ones that the handler reads slowly", atMost: "28 KiB a stream", n: 60,
    run: takenSlowly([16_384, 16_384, 16_384]) },
  {
    what: "small messages within 16 KiB that the handler reads slowly",
    atMost: "44 KiB a stream",
    n: 60,
    // With both frame headers, the write is one byte shorter than a write that is copied.
    run: takenSlowly([16_383 - 2 * 9 - twoMessages.byteLength]),
  },
  {
    what: "messages of many streams that the handler reads slowly",
    atMost: "12 MiB a connection",
    // The second measurement has 256 streams, which is a connection's limit.
    n: 64,
    run: async (server, n) => {
      const client = await openRaw(server.addresses.greenhouse);
      const climates = await openClimates(client, n);
      await untilSent(server, client);
      // Each handler takes only a frame's first message, for which the window is opened again completely.
      for (const readings of [frameOfReadings, manyReadings]) {
        for (const climate of climates) climate.write(readings);
        await untilSent(server, client);
      }
      return { clients: [client], units: 1 };
    },
  },
  { what: "health watches", atMost: "64 MiB in all", n: 400, run: watchers(emptyMessage) },
  {
    what: "health watches with unknown fields",
    atMost: "64 MiB in all",
    n: 400,
    // The message repeats field 2 with a one-byte number.
    run: watchers(encodeEnvelope(0, Buffer.alloc(512, Buffer.from([0x10, 1])))),
  },
  { what: "incomplete bodies of health checks", atMost: "32 KiB a stream", n: 60,
    run: streams((id) => [healthCall(id, "Check"), dataFrame(id, encodeEnvelope(0, Buffer.alloc(500), 512))], {
      per: "stream",
    }) },
  { what: "oversized bodies of health checks", atMost: "1.5 MiB a connection", n: 60, run: streams((id) => [
      healthCall(id, id % 4 === 1 ? "Check" : "Watch"),
      ...bodyFrames(id, encodeEnvelope(0, Buffer.alloc(60_000))),
    ]) },
  { what: "streams that are opened and reset", atMost: "512 KiB a connection", n: 90,
    run: streams((id) => [headersFrame(id, filled(guardedCall, id)), resetFrame(id, 8)]) },
  { what: "PINGs with unread acknowledgements", atMost: "256 KiB a connection", n: 2_000,
    run: frames((n) => times(n, () => frame(frameType.ping, 0, 0, Buffer.alloc(8)))) },
  { what: "SETTINGS with unread acknowledgements", atMost: "256 KiB a connection", n: 24,
    run: frames((n) => times(n, (i) => settingFrame(4, i))) },
];
