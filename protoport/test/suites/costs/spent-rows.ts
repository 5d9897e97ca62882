import { brotliCompressSync, gzipSync, zstdCompressSync } from "node:zlib";
import { emptyMessage, grpcHeader } from "../../../testing/src/http/grpc-frames.ts";
// oxfmt-ignore
import { bodyFrames, greenhouseCall, last, leaveStreams, mcpMessages, post, restReadings, streamIds, times, trickle
} from "../../support/costs/attacks.ts";
import type { MeasuredServer, ServerName } from "../../support/costs/measured-server.ts";
import { openRaw, openRawHttp2, openRawTls } from "../../support/costs/raw-client.ts";
// oxfmt-ignore
import { dataFrame, encodeEnvelope, type Field, frame, type Frame, frameType, headersFrame, resetFrame
} from "@protoport/testing";
import { settingFrame, whole, windowUpdateFrame } from "../../../testing/src/http2/http2-requests.ts";
import { authorized, bearer, guardedCall } from "../../support/costs/guarded-gateway.ts";

/** CPU time that clients can make the server use by one kind of action. */
export interface SpentRow {
  /** The action. protoport/SECURITY.md lists the most expensive ones. */
  readonly what: string;
  /** The CPU time limit as a multiple of an {@link ordinaryCall}'s. */
  readonly atMost: string;
  /** Number of actions in a turn. A second measurement has four times as many. */
  readonly n: number;
  readonly run: (server: MeasuredServer, n: number) => Promise<void>;
}

const readMaxBytes = 4 * 1024 * 1024;

/** How many requests are concurrent, well below a connection's limit. */
const atATime = 100;

/** Opens a connection's streams in waves, each after the server has handled the previous wave. */
function onStreams(name: ServerName, framesOf: (streamId: number) => readonly Frame[]): SpentRow["run"] {
  return async ({ addresses }, n) => {
    using client = (await openRawHttp2(addresses[name])).drain();
    const ids = streamIds(n);
    for (let from = 0; from < n; from += atATime) {
      client.send(...ids.slice(from, from + atATime).flatMap(framesOf));
      await client.settled();
    }
  };
}

/** Sends frames on one connection in one write, after others that do not count. */
function frames(framesOf: (n: number) => readonly Frame[], opening: readonly Frame[] = []): SpentRow["run"] {
  return async ({ addresses }, n) => {
    using client = (await openRawHttp2(addresses.guarded)).drain();
    client.send(...opening, ...framesOf(n));
    await client.settled();
  };
}

/** Sends a body on a stream with a separate frame and write for each byte. */
function trickled(name: ServerName, opening: Frame, bodyOf: (n: number) => Buffer): SpentRow["run"] {
  return async ({ addresses }, n) => {
    using client = (await openRawHttp2(addresses[name])).drain();
    client.send(opening);
    await trickle(client, bodyFrames(1, bodyOf(n), 1));
    await client.settled();
  };
}

/** Sends a request over HTTP/1.1 repeatedly, partly pipelined. */
function repeated(name: ServerName, request: Buffer): SpentRow["run"] {
  return async ({ addresses }, n) => {
    using client = (await openRaw(addresses[name])).drain();
    for (let from = 0; from < n; from += atATime) {
      const count = Math.min(atATime, n - from);
      client.write(Buffer.concat(Array.from({ length: count }, () => request)));
      await client.until(Buffer.from("HTTP/1.1 "), count);
    }
  };
}

/** Sends a request repeatedly over separate HTTP/1.1 connections, because most of these responses close them. */
function apart(name: ServerName, request: Buffer): SpentRow["run"] {
  return async (server, n) => {
    for (let i = 0; i < n; i++) await large(name, () => request)(server, 1);
  };
}

function large(name: ServerName, requestOf: (n: number) => Buffer): SpentRow["run"] {
  return async ({ addresses }, n) => {
    using client = (await openRaw(addresses[name])).drain();
    client.write(requestOf(n));
    await client.until(Buffer.from("HTTP/1.1 "));
  };
}

/** How many bytes are read from each response, which is longer. */
const octetsOfEach = 40;

/** The call by which all costs are measured, an empty one over gRPC, whose handler does nothing. */
export const ordinaryCall: SpentRow["run"] = onStreams("greenhouse", (id) => [
  greenhouseCall(id, "WaterBed"),
  dataFrame(id, emptyMessage, last),
]);

const waterBed = "/greenhouse.v1.GreenhouseService/WaterBed";

const postText = (text: string): Buffer =>
  post(waterBed, "application/grpc-web-text+proto", Buffer.from(text), "x-grpc-web: 1");

const bomb = Buffer.alloc(readMaxBytes + 1);
const compressed: readonly { readonly coding: string; readonly bytes: Buffer }[] = [
  { coding: "gzip", bytes: gzipSync(bomb) },
  { coding: "br", bytes: brotliCompressSync(bomb) },
  { coding: "zstd", bytes: zstdCompressSync(bomb) },
];
/** A nearly empty RFC 8878 frame with a 128 MiB window. */
const hugeWindow = Buffer.from("28b52ffd0088010000", "hex");

const proxyLists = [
  { what: "sent by the client", list: `${"a,".repeat(7_500)}203.0.113.7` },
  { what: "of commas", list: ",".repeat(15_000) },
  { what: "of trusted addresses", list: "10.0.0.1,".repeat(1_650) },
];

const forwardedLists = [
  { what: "of semicolons", list: `${";".repeat(1_000)},`.repeat(15) },
  {
    what: "of parameters",
    list: `for=10.0.0.1;${Array.from({ length: 15 }, (_, at) => `a${at}=b`).join(";")},`.repeat(140),
  },
  { what: "of escapes", list: `for=10.0.0.1;a="${String.raw`\x`.repeat(480)}",`.repeat(15) },
];

const manyFields = (count: number): Field[] => Array.from({ length: count }, (_, i) => [`x-${i}`, "y"]);

// oxfmt-ignore
export const spentRows: readonly SpentRow[] = [
  { what: "a request without a credential", atMost: "8", n: 1000,
    run: onStreams("guarded", (id) => [headersFrame(id, guardedCall, last)]) },
  { what: "a request with an unknown credential", atMost: "8", n: 1000, run: onStreams("guarded", (id) => [
      headersFrame(id, [...guardedCall, bearer(`unknown-token-0123456789-${id}`)], last),
    ]) },
  { what: "a request with the maximum of header fields", atMost: "12", n: 200,
    run: onStreams("guarded", (id) => [headersFrame(id, [...guardedCall, ...manyFields(400)], last)]) },
  { what: "an HTTP/1.1 request without a credential", atMost: "10", n: 1000,
    run: repeated("guarded", Buffer.from("GET / HTTP/1.1\r\nhost: x\r\n\r\n")) },
  ...[
    ["Accept", ";".repeat(12_000)],
    ["Accept-Encoding", "a;q=0.1,".repeat(1500)],
  ].map(([name, list]) => ({ what: `an \`${name}\` of 12 KB on a REST stream`,
    atMost: "30",
    n: 100,
    run: repeated(
      "greenhouse",
      Buffer.from(`GET /sensors/one-by-one/readings?count=1 HTTP/1.1\r\nhost: x\r\n${name}: ${list}\r\n\r\n`),
    ) })),
  ...proxyLists.map(({ what, list }) => ({ what: `an \`X-Forwarded-For\` of 15 KB, ${what}`,
    atMost: "18",
    n: 200,
    run: onStreams("greenhouse", (id) => [
      headersFrame(id, [...grpcHeader(waterBed), ["x-forwarded-for", list]], last),
    ]),
  })),
  ...forwardedLists.map(({ what, list }) => ({ what: `a \`Forwarded\` of 15 KB, ${what}`,
    atMost: "25",
    n: 200,
    run: onStreams("forwardedGreenhouse", (id) => [
      headersFrame(id, [...grpcHeader(waterBed), ["forwarded", `${list}for=10.0.0.1`]], last),
    ]),
  })),
  { what: "a query of 8 KB", atMost: "150", n: 50, run: repeated(
      "kitchenSink",
      Buffer.from(`GET /v1/verbs/x?${"tags=t&".repeat(1000)}ids=1 HTTP/1.1\r\nhost: x\r\n\r\n`),
    ) },
  { what: "a stream that is opened and reset", atMost: "10", n: 90,
    run: frames((n) => streamIds(n).flatMap((id) => [headersFrame(id, guardedCall), resetFrame(id, 8)])) },
  { what: "a stream that is reset after its first message", atMost: "10", n: 200, run: leaveStreams },
  { what: "a stream above the limit of concurrent streams", atMost: "8", n: 90, run: async ({ addresses }, n) => {
      using client = (await openRawHttp2(addresses.guarded)).drain();
      client.send(...streamIds(256 + n).map((id) => headersFrame(id, [...guardedCall, authorized])));
      await client.settled();
    } },
  { what: "a PING", atMost: "0.4", n: 490,
    run: frames((n) => times(n, () => frame(frameType.ping, 0, 0, Buffer.alloc(8)))) },
  { what: "a SETTINGS frame", atMost: "8", n: 24, run: frames((n) => times(n, (i) => settingFrame(4, i))) },
  { what: "a WINDOW_UPDATE", atMost: "0.2", n: 1200, run: frames((n) => times(n, () => windowUpdateFrame(0, 1))) },
  { what: "a window of one octet for a response, up to 240 streams in turn", atMost: "1", n: 60 * octetsOfEach,
    run: frames(
      (n) => {
        const ids = streamIds(n / octetsOfEach);
        const windows = times(octetsOfEach * ids.length, (i) => windowUpdateFrame(ids[i % ids.length] ?? 0, 1));
        return [...ids.map(whole), ...windows];
      },
      [settingFrame(4, 0)],
    ) },
  { what: "a frame of an unknown type", atMost: "0.4", n: 490, run: frames((n) => times(n, () => frame(0x55, 0, 0))) },
  { what: "an empty DATA frame", atMost: "8", n: 49,
    run: frames((n) => times(n, () => dataFrame(1, Buffer.of())), [headersFrame(1, [...guardedCall, authorized])]) },
  { what: "a single octet of a unary call's body", atMost: "2", n: 1000,
    run: trickled("guarded", headersFrame(1, [...guardedCall, authorized]), (n) => Buffer.alloc(n)) },
  { what: "a single octet of a stream's message", atMost: "2", n: 1000,
    run: trickled("greenhouse", greenhouseCall(1, "RecordReadings"), (n) =>
      encodeEnvelope(0, Buffer.alloc(n), 4_000_000),
    ) },
  { what: "a single octet of a REST stream's line", atMost: "2", n: 1000,
    run: trickled("greenhouse", headersFrame(1, restReadings), (n) => Buffer.alloc(n, "x")) },
  { what: "a KiB of empty lines of a REST stream", atMost: "30", n: 1000,
    run: large("greenhouse", (n) => post("/readings", "application/x-ndjson", Buffer.alloc(n * 1024, "\n"))) },
  { what: "an HTTP/1.1 chunk of a single octet", atMost: "0.3", n: 4000, run: large("greenhouse", (n) => {
      const fields = "host: x\r\ncontent-type: application/proto\r\ntransfer-encoding: chunked";
      return Buffer.from(`POST ${waterBed} HTTP/1.1\r\n${fields}\r\n\r\n${"1\r\n\0\r\n".repeat(n)}0\r\n\r\n`, "latin1");
    }) },
  { what: "a KiB of JSON with unknown names, deeply nested", atMost: "20", n: 64, run: large("kitchenSink", (n) => {
      const levels = 60;
      const names = Array.from({ length: n * 128 }, (_, i) => `"${i}":0`.padEnd(7)).join();
      const body = `{"nested":{${'"inner":{'.repeat(levels)}${names}${"}".repeat(levels)}}}`;
      return post("/kitchensink.v1.KitchenSink/Plain", "application/json", Buffer.from(body));
    }) },
  ...mcpMessages.map(({ what, atMost, wrap }) => ({ what: `a KiB of unknown names in ${what}`,
    atMost,
    n: 256,
    run: large("kitchenSink", (n) => {
      const names = Array.from({ length: n * 90 }, (_, i) => `"${i}":0`.padEnd(11)).join();
      return post("/mcp", "application/json", Buffer.from(wrap(names)));
    }),
  })),
  { what: "a KiB of JSON in eight levels of Any, each with its type at the end", atMost: "35", n: 64,
    run: large("kitchenSink", (n) => {
      const names = Array.from({ length: n * 128 }, (_, i) => `"${i}":0`.padEnd(7)).join();
      let body = `{${names},"@type":"type.googleapis.com/kitchensink.v1.Nested"}`;
      for (let level = 2; level <= 8; level++) {
        body = `{"value":${body},"@type":"type.googleapis.com/google.protobuf.Any"}`;
      }
      return post("/kitchensink.v1.KitchenSink/Plain", "application/json", Buffer.from(`{"any":${body}}`));
    }) },
  { what: "a KiB of gRPC-Web-text", atMost: "2", n: 250,
    run: large("greenhouse", (n) => postText(encodeEnvelope(0, Buffer.alloc(n * 768)).toString("base64"))) },
  { what: "a KiB of gRPC-Web-text, padded after each octet", atMost: "2", n: 1250,
    run: large("greenhouse", (n) => postText("AA==".repeat(n * 256))) },
  ...compressed.map(({ coding, bytes }) => ({ what: `a ${coding} body that decompresses to more than 4 MiB`,
    atMost: "2500",
    n: 4,
    run: apart("greenhouse", post(waterBed, "application/proto", bytes, `content-encoding: ${coding}`)),
  })),
  { what: "a body in zstd with a window of 128 MiB", atMost: "120", n: 20,
    run: apart("greenhouse", post(waterBed, "application/proto", hugeWindow, "content-encoding: zstd")) },
  { what: "a health check", atMost: "2.5", n: 1000, run: onStreams("guarded", (id) => [
      headersFrame(id, grpcHeader("/grpc.health.v1.Health/Check")),
      dataFrame(id, emptyMessage, last),
    ]) },
  { what: "an HTTP/2 connection that is opened and closed", atMost: "60", n: 50, run: async ({ addresses }, n) => {
      for (let i = 0; i < n; i++) {
        using client = (await openRawHttp2(addresses.guarded)).drain();
        await client.settled();
      }
    } },
  { what: "a TLS connection that is opened and closed", atMost: "150", n: 50, run: async ({ addresses }, n) => {
      for (let i = 0; i < n; i++) (await openRawTls(addresses.guardedOverTls))[Symbol.dispose]();
    } },
];
