import { Code } from "@connectrpc/connect";
import { gzipSync } from "node:zlib";
import type { GrpcTransportOptions } from "../../../../src/client/index.ts";
// oxfmt-ignore
import { envelope, grpcHead, grpcResponse, type Script, type ScriptedConnection, settingFrame, waterBedResponse, watered
} from "@protoport/testing/proxy";
// oxfmt-ignore
import { dataFrame, type Field, type Frame, frame, frameFlag, frameType, headerBlock, headersFrame, resetFrame
} from "@protoport/testing";

const end = frameFlag.endStream;

/** A server that violates HTTP/2 or gRPC, and the expected result when `WaterBed` is called for bed 7. */
export interface HostileCase {
  readonly name: string;
  readonly script: Script;
  /** The expected error code, or `undefined` if the call succeeds. */
  readonly want: Code | undefined;
  readonly message?: string;
  /** How often the server receives the complete request. By default, once. */
  readonly requests?: number;
  readonly options?: Partial<GrpcTransportOptions>;
}

/** Returns cases with the same result, whose scripts are given by name. */
const casesWith = (
  want: Code | undefined,
  scripts: Readonly<Record<string, Script>>,
  more: Omit<HostileCase, "name" | "script" | "want"> = {},
): readonly HostileCase[] => Object.entries(scripts).map(([name, script]) => ({ name, script, want, ...more }));

function sends(frames: (streamId: number) => readonly Frame[]): Script {
  return { request: (connection, id) => connection.send(...frames(id)) };
}

const responds = (body: Uint8Array, trailer?: readonly Field[], head?: readonly Field[]): Script =>
  sends((id) => grpcResponse(id, body, trailer, head));

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

const many = (count: number, one: Frame): Frame[] => Array.from({ length: count }, () => one);

const closesAfter = (frames: (streamId: number) => readonly Frame[]): Script => ({
  request: (connection, id) => {
    connection.send(...frames(id));
    connection.socket.end();
  },
});

const closes = (connection: ScriptedConnection) => connection.socket.destroy();

/** Servers that violate the protocols, and some that are unusual but correct. */
// oxfmt-ignore
export const hostileCases: readonly HostileCase[] = [
  { name: "a correct response", script: responds(watered), want: undefined },

  // HTTP/2 connection errors. protoport/gateway/test/engine/http2 has those that clients and servers reject alike.
  ...casesWith(
    Code.Unavailable,
    { "SETTINGS that enable push": { opening: [settingFrame(2, 1)] },
      "HTTP/1.1": { opening: Buffer.from("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n") },
    },
    { requests: 0 },
  ),
  ...casesWith(Code.Unavailable, { "a PUSH_PROMISE": sends((id) => {
      const promised = Buffer.concat([Buffer.of(0, 0, 0, 2), headerBlock([[":path", "/"]])]);
      return [frame(frameType.pushPromise, frameFlag.endHeaders, id, promised)];
    }),
    "a header of a megabyte": sends((id) => [
      frame(frameType.headers, 0, id, headerBlock([[":status", "200"]])),
      ...many(64, frame(frameType.continuation, 0, id, Buffer.alloc(16_384))),
    ]),
    "DATA on a stream that was never opened": sends((id) => [dataFrame(id + 2, watered)]),
    "a response on a server-initiated stream": sends(() => [headersFrame(2, grpcHead)]),
    "a flood of PING": sends(() => many(2500, frame(frameType.ping, 0, 0, Buffer.alloc(8)))),
    "a flood of interim responses": sends((id) => many(2500, headersFrame(id, [[":status", "103"]]))),
  }),

  // HTTP/2 stream errors.
  ...casesWith(Code.Internal, {    "a WINDOW_UPDATE of 0 for the stream": sends((id) => [numbers(frameType.windowUpdate, id, 0)]),
    "DATA before the header": sends((id) => [dataFrame(id, watered)]),
    "a header without :status": responds(watered, undefined, [["content-type", "application/grpc"]]),
    ":path instead of :status": responds(watered, undefined, [[":path", "200"], ...grpcHead.slice(1)]),
    "a duplicate :status": responds(watered, undefined, [[":status", "200"], ...grpcHead]),
    ":status after another field": responds(watered, undefined, [...grpcHead].toReversed()),
    "a :status of two digits": responds(watered, undefined, [[":status", "20"]]),
    "a request pseudo-header field": responds(watered, undefined, [...grpcHead, [":path", "/"]]),
    "a field name in upper case": responds(watered, undefined, [...grpcHead, ["X-A", "1"]]),
    "a line break in a field value": responds(watered, undefined, [...grpcHead, ["x-a", "1\r\nx-b: 2"]]),
    "a connection-specific field": responds(watered, undefined, [...grpcHead, ["connection", "close"]]),
    "a trailer with :status": responds(watered, Object.entries({ ":status": "200", "grpc-status": "0" })),
    "a trailer that does not end the stream": sends((id) => [
      headersFrame(id, grpcHead),
      headersFrame(id, [["grpc-status", "0"]]),
    ]),
    "a response with status 101": sends((id) => [headersFrame(id, [[":status", "101"]])]),
    "an interim response that ends the stream": sends((id) => [headersFrame(id, [[":status", "103"]], end)]),
  }),
  { name: "a 3 kB header block that decodes to 90 kB", script: sends((id) => {
      // A 3 kB field with incremental indexing, then its index 30 times (RFC 7541 §6.2.1, §6.1).
      const long = [Buffer.of(0x40, 1, 0x78, 0x7f, 0xb9, 0x16), Buffer.alloc(3_000, "v"), Buffer.alloc(30, 0x80 | 62)];
      const block = Buffer.concat([headerBlock(grpcHead), ...long]);
      return [frame(frameType.headers, frameFlag.endHeaders, id, block)];
    }), want: Code.ResourceExhausted },
  { name: "a reset with CANCEL", script: sends((id) => [resetFrame(id, 8)]), want: Code.Canceled },
  { name: "a reset with REFUSED_STREAM after the response header",
    script: sends((id) => [headersFrame(id, grpcHead), resetFrame(id, 7)]), want: Code.Unavailable },

  // Lost connections.
  ...casesWith(Code.Unavailable, { "a connection lost before the response": { request: closes },
    "a connection lost after the header": closesAfter((id) => [headersFrame(id, grpcHead)]),
    "a connection lost after the message": closesAfter((id) => [headersFrame(id, grpcHead), dataFrame(id, watered)]),
    "a server that half-closes immediately": { request: ({ socket }) => socket.end() },
    "GOAWAY that includes the call, then a closed connection": closesAfter((id) => [numbers(frameType.goAway, 0, id, 0)]),
  }),

  // Allowed by the protocols.
  ...casesWith(undefined, { "a response after an interim one": sends((id) => [
      headersFrame(id, Object.entries({ ":status": "103", link: "</a>" })),
      ...grpcResponse(id, watered),
    ]),
    "GOAWAY that includes the call, then a response": sends((id) => [
      numbers(frameType.goAway, 0, id, 0),
      ...grpcResponse(id, watered),
    ]),
    "frames of unknown types, and PRIORITY": sends((id) => [
      frame(0x42, 0xff, id, Buffer.alloc(9)),
      frame(frameType.priority, 0, id, Buffer.alloc(5)),
      ...grpcResponse(id, watered),
    ]),
    padding: sends((id) => [
      headersFrame(id, grpcHead),
      frame(frameType.data, frameFlag.padded, id, Buffer.concat([Buffer.of(3), watered, Buffer.alloc(3)])),
      headersFrame(id, [["grpc-status", "0"]], end),
    ]),
    "a response in single octets": sends((id) => [
      headersFrame(id, grpcHead),
      ...[...watered].map((octet) => dataFrame(id, Buffer.of(octet))),
      headersFrame(id, [["grpc-status", "0"]], end),
    ]),
    "a response, then RST_STREAM with NO_ERROR": sends((id) => [...grpcResponse(id, watered), resetFrame(id, 0)]),
    "a reset of a closed stream": { request: (connection, id) => connection.send(...grpcResponse(id, watered), resetFrame(id, 8)),
    },
  }),

  // HTTP, but not gRPC.
  { name: "HTTP 404 with an HTML page", script: http("404", html), want: Code.Unimplemented, message: "HTTP 404" },
  { name: "HTTP 200 with an HTML page", script: http("200", html), want: Code.Unknown },

  // gRPC.
  ...casesWith(Code.Internal, { "no grpc-status": responds(watered, [["x-a", "1"]]),
    "no trailer": sends((id) => [headersFrame(id, grpcHead), dataFrame(id, watered, end)]),
    "a trailers-only response without a status": sends((id) => [headersFrame(id, grpcHead, end)]),
  }),
  { name: "an error after a message", script: responds(watered, [["grpc-status", "10"]]), want: Code.Aborted },
  ...casesWith(Code.Unimplemented, { "no message": sends((id) => [headersFrame(id, grpcHead), headersFrame(id, [["grpc-status", "0"]], end)]),
    "a trailers-only success": sends((id) => [headersFrame(id, [...grpcHead, ["grpc-status", "0"]], end)]),
    "two messages": responds(Buffer.concat([watered, watered])),
  }),
  ...casesWith(Code.Internal, { "a truncated message": responds(watered.subarray(0, -1)),
    "a truncated prefix": responds(watered.subarray(0, 3)),
    "reserved flags": responds(envelope(waterBedResponse, 2)),
    "a compressed message without grpc-encoding": responds(envelope(gzipSync(waterBedResponse), 1)),
    "invalid gzip": responds(envelope(waterBedResponse, 1), undefined, [...grpcHead, ["grpc-encoding", "gzip"]]),
  }),
  { name: "a gzip message that decompresses to more than the limit",
    script: responds(envelope(gzipSync(Buffer.alloc(3000)), 1), undefined, [...grpcHead, ["grpc-encoding", "gzip"]]),
    want: Code.ResourceExhausted, options: { readMaxBytes: 2000 } },
  { name: "a message compressed with gzip",
    script: responds(envelope(gzipSync(waterBedResponse), 1), undefined, [...grpcHead, ["grpc-encoding", "gzip"]]),
    want: undefined },
  { name: "a message of another type", script: responds(envelope(Buffer.from("0a", "hex"))), want: Code.Internal },
  { name: "a message length over the limit, without the message",
    script: sends((id) => [headersFrame(id, grpcHead), dataFrame(id, Buffer.of(0, 0, 0x50, 0, 0))]),
    want: Code.ResourceExhausted },
  { name: "more bytes than the limit in an unfinished response",
    script: sends((id) => [headersFrame(id, grpcHead), dataFrame(id, watered),
      ...many(3, dataFrame(id, Buffer.alloc(1000)))]), want: Code.ResourceExhausted, options: { readMaxBytes: 2000 } },
  { name: "two messages that are together over the limit",
    script: sends((id) => [headersFrame(id, grpcHead),
      ...[1500, 600].map((bytes) => dataFrame(id, envelope(Buffer.alloc(bytes)))),
      headersFrame(id, [["grpc-status", "0"]], end)]), want: Code.ResourceExhausted, options: { readMaxBytes: 2000 } },
];
