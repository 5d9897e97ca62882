import { Code } from "@connectrpc/connect";
import { gzipSync } from "node:zlib";
import type { GrpcTransportOptions } from "../../src/client/index.ts";
import type { Field } from "../../../testing/src/carriers/exchange.ts";
import {
  dataFrame,
  type Frame,
  frame,
  frameFlag,
  frameType,
  headerBlock,
  headersFrame,
  resetFrame,
} from "../../../testing/src/carriers/http2-frames.ts";
import { waterBedResponse, watered } from "../../../testing/src/gateway/greenhouse-client.ts";
import {
  envelope,
  grpcAnswer,
  grpcHead,
  type Script,
  type ScriptedConnection,
} from "../../../testing/src/gateway/scripted-http2-server.ts";
import { settingFrame } from "../../../testing/src/http2/http2-requests.ts";

const end = frameFlag.endStream;

/** A server that breaks the rules of HTTP/2 or gRPC, and what a call of `WaterBed` for bed 7 ends with. */
export interface HostileRow {
  readonly name: string;
  readonly script: Script;
  /** The code of the error; `undefined` for a call that succeeds. */
  readonly want: Code | undefined;
  /** A part of its message. */
  readonly says?: string;
  /** How often the request arrives whole: once, unless it says otherwise. */
  readonly requests?: number;
  readonly options?: Partial<GrpcTransportOptions>;
}

/** Rows that end alike: scripts by their names. */
function endWith(
  want: Code | undefined,
  scripts: Readonly<Record<string, Script>>,
  more: Omit<HostileRow, "name" | "script" | "want"> = {},
): readonly HostileRow[] {
  return Object.entries(scripts).map(([name, script]) => ({ name, script, want, ...more }));
}

/** A script that answers with these frames. */
function sends(frames: (streamId: number) => readonly Frame[]): Script {
  return { request: (connection, id) => connection.send(...frames(id)) };
}

function answers(body: Uint8Array, trailer?: readonly Field[], head?: readonly Field[]): Script {
  return sends((id) => grpcAnswer(id, body, trailer, head));
}

function http(status: string, more: readonly Field[] = []): Script {
  return sends((id) => [
    headersFrame(id, [[":status", status], ...more]),
    dataFrame(id, Buffer.from("<html>secret</html>"), end),
  ]);
}

const html: readonly Field[] = [["content-type", "text/html"]];

function numbers(type: number, streamId: number, ...values: readonly number[]): Frame {
  const payload = Buffer.alloc(values.length * 4);
  for (const [at, value] of values.entries()) payload.writeUInt32BE(value, at * 4);
  return frame(type, 0, streamId, payload);
}

function many(count: number, one: Frame): Frame[] {
  return Array.from({ length: count }, () => one);
}

function closes(connection: ScriptedConnection): void {
  connection.socket.destroy();
}

/** Servers that break the rules, and some that do not. */
export const hostileRows: readonly HostileRow[] = [
  { name: "an answer as it should be", script: answers(watered), want: undefined },

  // HTTP/2: what ends the connection.
  ...endWith(
    Code.Unavailable,
    {
      "SETTINGS that allow to push": { opening: [settingFrame(2, 1)] },
      "a first frame that is not SETTINGS": { opening: [frame(frameType.ping, 0, 0, Buffer.alloc(8))] },
      "HTTP/1.1": { opening: Buffer.from("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n") },
    },
    { requests: 0 },
  ),
  ...endWith(Code.Unavailable, {
    "a PUSH_PROMISE": sends((id) => {
      const promised = Buffer.concat([Buffer.of(0, 0, 0, 2), headerBlock([[":path", "/"]])]);
      return [frame(frameType.pushPromise, frameFlag.endHeaders, id, promised)];
    }),
    "a frame that is too large": sends((id) => [dataFrame(id, Buffer.alloc(16_385))]),
    "an index that no table has": sends((id) => [
      frame(frameType.headers, frameFlag.endHeaders, id, Buffer.of(0xff, 0x7f)),
    ]),
    "a table that is larger than allowed": sends((id) => [
      frame(frameType.headers, frameFlag.endHeaders, id, Buffer.of(0x3f, 0xe2, 0x1f, 0x88)),
    ]),
    "a header of a megabyte": sends((id) => [
      frame(frameType.headers, 0, id, headerBlock([[":status", "200"]])),
      ...many(64, frame(frameType.continuation, 0, id, Buffer.alloc(16_384))),
    ]),
    "a header block that another frame interrupts": sends((id) => [
      frame(frameType.headers, 0, id, headerBlock(grpcHead)),
      dataFrame(id, watered),
    ]),
    "CONTINUATION without a header": sends((id) => [frame(frameType.continuation, 4, id)]),
    "DATA on no stream": sends(() => [dataFrame(0, watered)]),
    "DATA on a stream that was never opened": sends((id) => [dataFrame(id + 2, watered)]),
    "an answer on a stream of the server's": sends(() => [headersFrame(2, grpcHead)]),
    "a reset of a stream that was never opened": sends((id) => [resetFrame(id + 2, 8)]),
    "RST_STREAM of a wrong size": sends((id) => [frame(frameType.resetStream, 0, id, Buffer.alloc(3))]),
    "PING of a wrong size": sends(() => [frame(frameType.ping, 0, 0, Buffer.alloc(7))]),
    "GOAWAY of a wrong size": sends(() => [frame(frameType.goAway, 0, 0, Buffer.alloc(7))]),
    "SETTINGS of a wrong size": sends(() => [frame(frameType.settings, 0, 0, Buffer.alloc(5))]),
    "a window that is too large": sends(() => [settingFrame(4, 0x8000_0000)]),
    "frames that are too small": sends(() => [settingFrame(5, 100)]),
    "a WINDOW_UPDATE that overflows the connection": sends(() => [numbers(frameType.windowUpdate, 0, 0x7fff_ffff)]),
    "a WINDOW_UPDATE of 0 for the connection": sends(() => [numbers(frameType.windowUpdate, 0, 0)]),
    "padding longer than its frame": sends((id) => [
      headersFrame(id, grpcHead),
      frame(frameType.data, frameFlag.padded, id, Buffer.of(9, 0)),
    ]),
    "a flood of SETTINGS": sends(() => many(200, frame(frameType.settings, 0, 0))),
    "a flood of PING": sends(() => many(2500, frame(frameType.ping, 0, 0, Buffer.alloc(8)))),
    "a flood of WINDOW_UPDATE": sends(() => many(6000, numbers(frameType.windowUpdate, 0, 1))),
    "a flood of empty DATA": sends((id) => [headersFrame(id, grpcHead), ...many(300, dataFrame(id, Buffer.alloc(0)))]),
    "a flood of interim answers": sends((id) => many(2500, headersFrame(id, [[":status", "103"]]))),
    "a flood of unknown frames": sends(() => many(2500, frame(0x42, 0, 0))),
  }),

  // HTTP/2: what ends the stream.
  ...endWith(Code.Internal, {
    "a WINDOW_UPDATE that overflows the stream": sends((id) => [numbers(frameType.windowUpdate, id, 0x7fff_ffff)]),
    "a WINDOW_UPDATE of 0 for the stream": sends((id) => [numbers(frameType.windowUpdate, id, 0)]),
    "DATA before the header": sends((id) => [dataFrame(id, watered)]),
    "a header without :status": answers(watered, undefined, [["content-type", "application/grpc"]]),
    ":path in place of :status": answers(watered, undefined, [[":path", "200"], ...grpcHead.slice(1)]),
    "two of :status": answers(watered, undefined, [[":status", "200"], ...grpcHead]),
    ":status after another field": answers(watered, undefined, [...grpcHead].toReversed()),
    "a :status that is none": answers(watered, undefined, [[":status", "20"]]),
    "a field of a request": answers(watered, undefined, [...grpcHead, [":path", "/"]]),
    "a name in upper case": answers(watered, undefined, [...grpcHead, ["X-A", "1"]]),
    "a line break in a value": answers(watered, undefined, [...grpcHead, ["x-a", "1\r\nx-b: 2"]]),
    "a field of HTTP/1.1": answers(watered, undefined, [...grpcHead, ["connection", "close"]]),
    "a trailer with :status": answers(watered, [
      [":status", "200"],
      ["grpc-status", "0"],
    ]),
    "a trailer that does not end the stream": sends((id) => [
      headersFrame(id, grpcHead),
      headersFrame(id, [["grpc-status", "0"]]),
    ]),
    "an answer with status 101": sends((id) => [headersFrame(id, [[":status", "101"]])]),
    "an interim answer that ends the stream": sends((id) => [headersFrame(id, [[":status", "103"]], end)]),
  }),
  {
    name: "a header list of 20 KiB",
    script: answers(watered, undefined, [
      ...grpcHead,
      ["x-long", "a".repeat(10_000)],
      ["x-longer", "b".repeat(6_000)],
      ["x-and", "c".repeat(300)],
    ]),
    want: Code.ResourceExhausted,
  },
  ...[
    { code: 0, want: Code.Internal },
    { code: 1, want: Code.Internal },
    { code: 2, want: Code.Internal },
    { code: 8, want: Code.Canceled },
    { code: 11, want: Code.ResourceExhausted },
    { code: 12, want: Code.PermissionDenied },
    { code: 99, want: Code.Internal },
  ].map(({ code, want }) => ({
    name: `a reset with code ${code}`,
    script: sends((id) => [resetFrame(id, code)]),
    want,
  })),
  {
    name: "a reset with REFUSED_STREAM after a header",
    script: sends((id) => [headersFrame(id, grpcHead), resetFrame(id, 7)]),
    want: Code.Unavailable,
  },

  // A connection that is lost.
  ...endWith(Code.Unavailable, {
    "a connection lost before the answer": { request: closes },
    "a connection lost after the header": {
      request: (connection, id) => {
        connection.send(headersFrame(id, grpcHead));
        connection.socket.end();
      },
    },
    "a connection lost after the message": {
      request: (connection, id) => {
        connection.send(headersFrame(id, grpcHead), dataFrame(id, watered));
        connection.socket.end();
      },
    },
    "a server that ends its side at once": { request: ({ socket }) => socket.end() },
    "GOAWAY that names the call, and then the end": {
      request: (connection, id) => {
        connection.send(numbers(frameType.goAway, 0, id, 0));
        connection.socket.end();
      },
    },
  }),

  // What is allowed.
  ...endWith(undefined, {
    "an answer after an interim one": sends((id) => [
      headersFrame(id, [
        [":status", "103"],
        ["link", "</a>"],
      ]),
      ...grpcAnswer(id, watered),
    ]),
    "GOAWAY that names the call, which is answered then": sends((id) => [
      numbers(frameType.goAway, 0, id, 0),
      ...grpcAnswer(id, watered),
    ]),
    "frames of unknown types, and PRIORITY": sends((id) => [
      frame(0x42, 0xff, id, Buffer.alloc(9)),
      frame(frameType.priority, 0, id, Buffer.alloc(5)),
      ...grpcAnswer(id, watered),
    ]),
    padding: sends((id) => [
      headersFrame(id, grpcHead),
      frame(frameType.data, frameFlag.padded, id, Buffer.concat([Buffer.of(3), watered, Buffer.alloc(3)])),
      headersFrame(id, [["grpc-status", "0"]], end),
    ]),
    "an answer in single octets": sends((id) => [
      headersFrame(id, grpcHead),
      ...[...watered].map((octet) => dataFrame(id, Buffer.of(octet))),
      headersFrame(id, [["grpc-status", "0"]], end),
    ]),
    "an answer and then a reset without an error": sends((id) => [...grpcAnswer(id, watered), resetFrame(id, 0)]),
    "a reset of a stream that has ended": {
      request: (connection, id) => connection.send(...grpcAnswer(id, watered), resetFrame(id, 8)),
    },
  }),
  {
    name: "a status beside details of another code",
    script: answers(watered, [
      ["grpc-status", "5"],
      ["grpc-message", "no%20bed"],
      ["grpc-status-details-bin", "CAA"],
    ]),
    want: Code.NotFound,
    says: "no bed",
  },

  // HTTP, but not gRPC.
  ...[
    { status: "301", want: Code.Unknown },
    { status: "400", want: Code.Internal },
    { status: "401", want: Code.Unauthenticated },
    { status: "403", want: Code.PermissionDenied },
    { status: "404", want: Code.Unimplemented },
    { status: "429", want: Code.Unavailable },
    { status: "500", want: Code.Unknown },
    { status: "502", want: Code.Unavailable },
    { status: "503", want: Code.Unavailable },
    { status: "504", want: Code.Unavailable },
    { status: "666", want: Code.Unknown },
  ].map(({ status, want }) => ({
    name: `HTTP ${status} with a page`,
    script: http(status, html),
    want,
    says: `HTTP ${status}`,
  })),
  {
    name: "HTTP 503 with a page that names a status",
    script: http("503", [...html, ["grpc-status", "5"]]),
    want: Code.Unavailable,
    says: "HTTP 503",
  },
  {
    name: "a coding and a type in other spellings",
    script: answers(watered, undefined, [
      [":status", "200"],
      ["content-type", "Application/gRPC ; a=b"],
      ["grpc-encoding", "Identity"],
    ]),
    want: undefined,
  },
  ...endWith(Code.Unknown, {
    "HTTP 200 with a page": http("200", html),
    "a type that only ends as it should": http("200", [["content-type", "x/application/grpc"]]),
    "no content type": http("200"),
  }),
  ...endWith(Code.Internal, {
    "JSON of gRPC": answers(watered, undefined, [
      [":status", "200"],
      ["content-type", "application/grpc+json"],
    ]),
    "gRPC-Web": answers(watered, undefined, [
      [":status", "200"],
      ["content-type", "application/grpc-web+proto"],
    ]),
  }),
  {
    name: "HTTP 503 of gRPC that has no grpc-status",
    script: http("503", grpcHead.slice(1)),
    want: Code.Unavailable,
    says: "HTTP 503",
  },
  {
    name: "HTTP 503 that has a grpc-status",
    script: sends((id) => [
      headersFrame(
        id,
        [
          [":status", "503"],
          ["content-type", "application/grpc"],
          ["grpc-status", "8"],
          ["grpc-message", "busy"],
        ],
        end,
      ),
    ]),
    want: Code.ResourceExhausted,
    says: "busy",
  },

  // gRPC.
  ...endWith(Code.Internal, {
    "no grpc-status": answers(watered, [["x-a", "1"]]),
    "no trailer": sends((id) => [headersFrame(id, grpcHead), dataFrame(id, watered, end)]),
    "a header that is all, without a status": sends((id) => [headersFrame(id, grpcHead, end)]),
    "a status that is no number": answers(watered, [["grpc-status", "ok"]]),
    "a status that is negative": answers(watered, [["grpc-status", "-1"]]),
    "two statuses": answers(watered, [
      ["grpc-status", "0"],
      ["grpc-status", "0"],
    ]),
  }),
  {
    name: "status 17",
    script: answers(watered, [
      ["grpc-status", "17"],
      ["grpc-message", "odd"],
    ]),
    want: Code.Unknown,
    says: "odd",
  },
  {
    name: "a message that is not percent-encoded well",
    script: answers(watered, [
      ["grpc-status", "9"],
      ["grpc-message", "50% off"],
    ]),
    want: Code.FailedPrecondition,
    says: "50% off",
  },
  {
    name: "details that are not base64",
    script: answers(watered, [
      ["grpc-status", "5"],
      ["grpc-message", "none"],
      ["grpc-status-details-bin", "?"],
    ]),
    want: Code.NotFound,
    says: "none",
  },
  { name: "an error after a message", script: answers(watered, [["grpc-status", "10"]]), want: Code.Aborted },
  ...endWith(Code.Unimplemented, {
    "no message": sends((id) => [headersFrame(id, grpcHead), headersFrame(id, [["grpc-status", "0"]], end)]),
    "a success that is only a header": sends((id) => [headersFrame(id, [...grpcHead, ["grpc-status", "0"]], end)]),
    "two messages": answers(Buffer.concat([watered, watered])),
  }),
  ...endWith(Code.Internal, {
    "a cut message": answers(watered.subarray(0, -1)),
    "a cut prefix": answers(watered.subarray(0, 3)),
    "reserved flags": answers(envelope(waterBedResponse, 2)),
    "a compressed message in an answer that is not": answers(envelope(gzipSync(waterBedResponse), 1)),
    "a coding that nobody knows": answers(envelope(waterBedResponse, 1), undefined, [
      ...grpcHead,
      ["grpc-encoding", "snappy"],
    ]),
    "gzip that is none": answers(envelope(waterBedResponse, 1), undefined, [...grpcHead, ["grpc-encoding", "gzip"]]),
  }),
  {
    name: "gzip that is too much",
    script: answers(envelope(gzipSync(Buffer.alloc(3000)), 1), undefined, [...grpcHead, ["grpc-encoding", "gzip"]]),
    want: Code.ResourceExhausted,
    options: { readMaxBytes: 2000 },
  },
  {
    name: "gzip",
    script: answers(envelope(gzipSync(waterBedResponse), 1), undefined, [...grpcHead, ["grpc-encoding", "gzip"]]),
    want: undefined,
  },
  { name: "a message of another type", script: answers(envelope(Buffer.from("0a", "hex"))), want: Code.Internal },
  {
    name: "a length over the limit, before the rest comes",
    script: sends((id) => [headersFrame(id, grpcHead), dataFrame(id, Buffer.of(0, 0, 0x50, 0, 0))]),
    want: Code.ResourceExhausted,
  },
  {
    name: "more than the limit in pieces, before the rest comes",
    script: sends((id) => [
      headersFrame(id, grpcHead),
      dataFrame(id, watered),
      ...many(3, dataFrame(id, Buffer.alloc(1000))),
    ]),
    want: Code.ResourceExhausted,
    options: { readMaxBytes: 2000 },
  },
  {
    name: "more than the limit in two messages",
    script: sends((id) => [
      headersFrame(id, grpcHead),
      ...[1500, 600].map((bytes) => dataFrame(id, envelope(Buffer.alloc(bytes)))),
      headersFrame(id, [["grpc-status", "0"]], end),
    ]),
    want: Code.ResourceExhausted,
    options: { readMaxBytes: 2000 },
  },
];
