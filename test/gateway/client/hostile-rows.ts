import { Code } from "@connectrpc/connect";
import { gzipSync } from "node:zlib";
import type { GrpcTransportOptions } from "../../../src/gateway/client/index.ts";
import type { Field } from "../../support/carriers/exchange.ts";
import {
  dataFrame,
  type Frame,
  frame,
  frameFlag,
  frameType,
  headerBlock,
  headersFrame,
  resetFrame,
} from "../../support/carriers/http2-frames.ts";
import { waterBedResponse, watered } from "../../support/gateway/greenhouse-client.ts";
import {
  envelope,
  grpcAnswer,
  grpcHead,
  type Script,
  type ScriptedConnection,
} from "../../support/gateway/scripted-http2-server.ts";
import { settingFrame } from "../../support/http2/http2-requests.ts";

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
  {
    name: "a PUSH_PROMISE",
    script: sends((id) => [
      frame(
        frameType.pushPromise,
        frameFlag.endHeaders,
        id,
        Buffer.concat([Buffer.of(0, 0, 0, 2), headerBlock([[":path", "/"]])]),
      ),
    ]),
    want: Code.Unavailable,
  },
  {
    name: "SETTINGS that allow to push",
    script: { opening: [settingFrame(2, 1)] },
    want: Code.Unavailable,
    requests: 0,
  },
  {
    name: "a first frame that is not SETTINGS",
    script: { opening: [frame(frameType.ping, 0, 0, Buffer.alloc(8))] },
    want: Code.Unavailable,
    requests: 0,
  },
  {
    name: "HTTP/1.1",
    script: { opening: Buffer.from("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n") },
    want: Code.Unavailable,
    requests: 0,
  },
  {
    name: "a frame that is too large",
    script: sends((id) => [dataFrame(id, Buffer.alloc(16_385))]),
    want: Code.Unavailable,
  },
  {
    name: "an index that no table has",
    script: sends((id) => [frame(frameType.headers, frameFlag.endHeaders, id, Buffer.of(0xff, 0x7f))]),
    want: Code.Unavailable,
  },
  {
    name: "a table that is larger than allowed",
    script: sends((id) => [frame(frameType.headers, frameFlag.endHeaders, id, Buffer.of(0x3f, 0xe2, 0x1f, 0x88))]),
    want: Code.Unavailable,
  },
  {
    name: "a header of a megabyte",
    script: sends((id) => [
      frame(frameType.headers, 0, id, headerBlock([[":status", "200"]])),
      ...many(64, frame(frameType.continuation, 0, id, Buffer.alloc(16_384))),
    ]),
    want: Code.Unavailable,
  },
  {
    name: "a header block that another frame interrupts",
    script: sends((id) => [frame(frameType.headers, 0, id, headerBlock(grpcHead)), dataFrame(id, watered)]),
    want: Code.Unavailable,
  },
  {
    name: "CONTINUATION without a header",
    script: sends((id) => [frame(frameType.continuation, 4, id)]),
    want: Code.Unavailable,
  },
  { name: "DATA on no stream", script: sends(() => [dataFrame(0, watered)]), want: Code.Unavailable },
  {
    name: "DATA on a stream that was never opened",
    script: sends((id) => [dataFrame(id + 2, watered)]),
    want: Code.Unavailable,
  },
  {
    name: "an answer on a stream of the server's",
    script: sends(() => [headersFrame(2, grpcHead)]),
    want: Code.Unavailable,
  },
  {
    name: "a reset of a stream that was never opened",
    script: sends((id) => [resetFrame(id + 2, 8)]),
    want: Code.Unavailable,
  },
  {
    name: "RST_STREAM of a wrong size",
    script: sends((id) => [frame(frameType.resetStream, 0, id, Buffer.alloc(3))]),
    want: Code.Unavailable,
  },
  {
    name: "PING of a wrong size",
    script: sends(() => [frame(frameType.ping, 0, 0, Buffer.alloc(7))]),
    want: Code.Unavailable,
  },
  {
    name: "GOAWAY of a wrong size",
    script: sends(() => [frame(frameType.goAway, 0, 0, Buffer.alloc(7))]),
    want: Code.Unavailable,
  },
  {
    name: "SETTINGS of a wrong size",
    script: sends(() => [frame(frameType.settings, 0, 0, Buffer.alloc(5))]),
    want: Code.Unavailable,
  },
  { name: "a window that is too large", script: sends(() => [settingFrame(4, 0x8000_0000)]), want: Code.Unavailable },
  { name: "frames that are too small", script: sends(() => [settingFrame(5, 100)]), want: Code.Unavailable },
  {
    name: "a WINDOW_UPDATE that overflows the connection",
    script: sends(() => [numbers(frameType.windowUpdate, 0, 0x7fff_ffff)]),
    want: Code.Unavailable,
  },
  {
    name: "a WINDOW_UPDATE of 0 for the connection",
    script: sends(() => [numbers(frameType.windowUpdate, 0, 0)]),
    want: Code.Unavailable,
  },
  {
    name: "padding longer than its frame",
    script: sends((id) => [headersFrame(id, grpcHead), frame(frameType.data, frameFlag.padded, id, Buffer.of(9, 0))]),
    want: Code.Unavailable,
  },
  {
    name: "a flood of SETTINGS",
    script: sends(() => many(200, frame(frameType.settings, 0, 0))),
    want: Code.Unavailable,
  },
  {
    name: "a flood of PING",
    script: sends(() => many(2500, frame(frameType.ping, 0, 0, Buffer.alloc(8)))),
    want: Code.Unavailable,
  },
  {
    name: "a flood of WINDOW_UPDATE",
    script: sends(() => many(6000, numbers(frameType.windowUpdate, 0, 1))),
    want: Code.Unavailable,
  },
  {
    name: "a flood of empty DATA",
    script: sends((id) => [headersFrame(id, grpcHead), ...many(300, dataFrame(id, Buffer.alloc(0)))]),
    want: Code.Unavailable,
  },
  {
    name: "a flood of interim answers",
    script: sends((id) => many(2500, headersFrame(id, [[":status", "103"]]))),
    want: Code.Unavailable,
  },
  { name: "a flood of unknown frames", script: sends(() => many(2500, frame(0x42, 0, 0))), want: Code.Unavailable },

  // HTTP/2: what ends the stream.
  {
    name: "a WINDOW_UPDATE that overflows the stream",
    script: sends((id) => [numbers(frameType.windowUpdate, id, 0x7fff_ffff)]),
    want: Code.Internal,
  },
  {
    name: "a WINDOW_UPDATE of 0 for the stream",
    script: sends((id) => [numbers(frameType.windowUpdate, id, 0)]),
    want: Code.Internal,
  },
  { name: "DATA before the header", script: sends((id) => [dataFrame(id, watered)]), want: Code.Internal },
  {
    name: "a header without :status",
    script: answers(watered, undefined, [["content-type", "application/grpc"]]),
    want: Code.Internal,
  },
  {
    name: "two of :status",
    script: answers(watered, undefined, [[":status", "200"], ...grpcHead]),
    want: Code.Internal,
  },
  {
    name: ":status after another field",
    script: answers(watered, undefined, [...grpcHead].toReversed()),
    want: Code.Internal,
  },
  { name: "a :status that is none", script: answers(watered, undefined, [[":status", "20"]]), want: Code.Internal },
  {
    name: "a field of a request",
    script: answers(watered, undefined, [...grpcHead, [":path", "/"]]),
    want: Code.Internal,
  },
  {
    name: "a name in upper case",
    script: answers(watered, undefined, [...grpcHead, ["X-A", "1"]]),
    want: Code.Internal,
  },
  {
    name: "a line break in a value",
    script: answers(watered, undefined, [...grpcHead, ["x-a", "1\r\nx-b: 2"]]),
    want: Code.Internal,
  },
  {
    name: "a field of HTTP/1.1",
    script: answers(watered, undefined, [...grpcHead, ["connection", "close"]]),
    want: Code.Internal,
  },
  {
    name: "a trailer with :status",
    script: answers(watered, [
      [":status", "200"],
      ["grpc-status", "0"],
    ]),
    want: Code.Internal,
  },
  {
    name: "a trailer that does not end the stream",
    script: sends((id) => [headersFrame(id, grpcHead), headersFrame(id, [["grpc-status", "0"]])]),
    want: Code.Internal,
  },
  { name: "101", script: sends((id) => [headersFrame(id, [[":status", "101"]])]), want: Code.Internal },
  {
    name: "an interim answer that ends the stream",
    script: sends((id) => [headersFrame(id, [[":status", "103"]], end)]),
    want: Code.Internal,
  },
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
  { name: "a connection lost before the answer", script: { request: closes }, want: Code.Unavailable },
  {
    name: "a connection lost after the header",
    script: {
      request: (connection, id) => {
        connection.send(headersFrame(id, grpcHead));
        connection.socket.end();
      },
    },
    want: Code.Unavailable,
  },
  {
    name: "a connection lost after the message",
    script: {
      request: (connection, id) => {
        connection.send(headersFrame(id, grpcHead), dataFrame(id, watered));
        connection.socket.end();
      },
    },
    want: Code.Unavailable,
  },
  {
    name: "a server that ends its side at once",
    script: { request: ({ socket }) => socket.end() },
    want: Code.Unavailable,
  },
  {
    name: "GOAWAY that names the call, and then the end",
    script: {
      request: (connection, id) => {
        connection.send(numbers(frameType.goAway, 0, id, 0));
        connection.socket.end();
      },
    },
    want: Code.Unavailable,
  },

  // What is allowed.
  {
    name: "an answer after an interim one",
    script: sends((id) => [
      headersFrame(id, [
        [":status", "103"],
        ["link", "</a>"],
      ]),
      ...grpcAnswer(id, watered),
    ]),
    want: undefined,
  },
  {
    name: "GOAWAY that names the call, which is answered then",
    script: sends((id) => [numbers(frameType.goAway, 0, id, 0), ...grpcAnswer(id, watered)]),
    want: undefined,
  },
  {
    name: "frames of unknown types, and PRIORITY",
    script: sends((id) => [
      frame(0x42, 0xff, id, Buffer.alloc(9)),
      frame(frameType.priority, 0, id, Buffer.alloc(5)),
      ...grpcAnswer(id, watered),
    ]),
    want: undefined,
  },
  {
    name: "padding",
    script: sends((id) => [
      headersFrame(id, grpcHead),
      frame(frameType.data, frameFlag.padded, id, Buffer.concat([Buffer.of(3), watered, Buffer.alloc(3)])),
      headersFrame(id, [["grpc-status", "0"]], end),
    ]),
    want: undefined,
  },
  {
    name: "an answer in single octets",
    script: sends((id) => [
      headersFrame(id, grpcHead),
      ...[...watered].map((octet) => dataFrame(id, Buffer.of(octet))),
      headersFrame(id, [["grpc-status", "0"]], end),
    ]),
    want: undefined,
  },
  {
    name: "an answer and then a reset without an error",
    script: sends((id) => [...grpcAnswer(id, watered), resetFrame(id, 0)]),
    want: undefined,
  },
  {
    name: "a reset of a stream that has ended",
    script: { request: (connection, id) => connection.send(...grpcAnswer(id, watered), resetFrame(id, 8)) },
    want: undefined,
  },
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
  { name: "HTTP 200 with a page", script: http("200", html), want: Code.Unknown },
  { name: "no content type", script: http("200"), want: Code.Unknown },
  {
    name: "JSON of gRPC",
    script: answers(watered, undefined, [
      [":status", "200"],
      ["content-type", "application/grpc+json"],
    ]),
    want: Code.Internal,
  },
  {
    name: "gRPC-Web",
    script: answers(watered, undefined, [
      [":status", "200"],
      ["content-type", "application/grpc-web+proto"],
    ]),
    want: Code.Internal,
  },
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
  { name: "no grpc-status", script: answers(watered, [["x-a", "1"]]), want: Code.Internal },
  {
    name: "no trailer",
    script: sends((id) => [headersFrame(id, grpcHead), dataFrame(id, watered, end)]),
    want: Code.Internal,
  },
  {
    name: "a header that is all, without a status",
    script: sends((id) => [headersFrame(id, grpcHead, end)]),
    want: Code.Internal,
  },
  { name: "a status that is no number", script: answers(watered, [["grpc-status", "ok"]]), want: Code.Internal },
  { name: "a status that is negative", script: answers(watered, [["grpc-status", "-1"]]), want: Code.Internal },
  {
    name: "two statuses",
    script: answers(watered, [
      ["grpc-status", "0"],
      ["grpc-status", "0"],
    ]),
    want: Code.Internal,
  },
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
  {
    name: "no message",
    script: sends((id) => [headersFrame(id, grpcHead), headersFrame(id, [["grpc-status", "0"]], end)]),
    want: Code.Unimplemented,
  },
  {
    name: "a success that is only a header",
    script: sends((id) => [headersFrame(id, [...grpcHead, ["grpc-status", "0"]], end)]),
    want: Code.Unimplemented,
  },
  { name: "two messages", script: answers(Buffer.concat([watered, watered])), want: Code.Unimplemented },
  { name: "a cut message", script: answers(watered.subarray(0, -1)), want: Code.Internal },
  { name: "a cut prefix", script: answers(watered.subarray(0, 3)), want: Code.Internal },
  { name: "reserved flags", script: answers(envelope(waterBedResponse, 2)), want: Code.Internal },
  {
    name: "a compressed message in an answer that is not",
    script: answers(envelope(gzipSync(waterBedResponse), 1)),
    want: Code.Internal,
  },
  {
    name: "a coding that nobody knows",
    script: answers(envelope(waterBedResponse, 1), undefined, [...grpcHead, ["grpc-encoding", "snappy"]]),
    want: Code.Internal,
  },
  {
    name: "gzip that is none",
    script: answers(envelope(waterBedResponse, 1), undefined, [...grpcHead, ["grpc-encoding", "gzip"]]),
    want: Code.Internal,
  },
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
    name: "more than the limit in pieces",
    script: sends((id) => [
      headersFrame(id, grpcHead),
      dataFrame(id, watered),
      ...many(3, dataFrame(id, Buffer.alloc(1000))),
    ]),
    want: Code.ResourceExhausted,
    options: { readMaxBytes: 2000 },
  },
];
