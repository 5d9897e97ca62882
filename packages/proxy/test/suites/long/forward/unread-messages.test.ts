import { create } from "@bufbuild/protobuf";
import type { Interceptor, UnaryRequest, UnaryResponse } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import {
  GreenhouseService,
  WaterBedRequestSchema,
} from "../../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { fieldValue, type HttpResponse } from "../../../../../testing/src/http/exchange.ts";
import { exchangeHttp2 } from "../../../../../testing/src/http/http2-connection.ts";
import { frameType } from "../../../../../testing/src/http/http2-frames.ts";
import { startProxy } from "../../../../../testing/src/gateway/proxy.ts";
import {
  envelope,
  grpcResponse,
  startScriptedServer,
} from "../../../../../testing/src/gateway/scripted-http2-server.ts";

// Decoding and encoding a message with one field twice removes the first one.
const [received, encoded] = [Buffer.from("\x1a\x01a\x1a\x01b"), Buffer.from("\x1a\x01b")];
const malformed = Buffer.from("\x1a\x7f");

/** Calls an RPC of a proxy with an interceptor. Returns the message that the upstream gets, and the response. */
async function call(interceptor: Interceptor, type: string, request: Buffer, response: Buffer) {
  let forwarded = Buffer.alloc(0);
  await using upstream = await startScriptedServer({
    request: (connection, id) => connection.send(...grpcResponse(id, envelope(response))),
    frame: (_, { type: kind, payload }) => {
      if (kind === frameType.data) forwarded = Buffer.concat([forwarded, payload]);
    },
  });
  await using proxy = await startProxy(upstream.baseUrl, [GreenhouseService.file], { interceptors: [interceptor] });
  const header = [["content-type", type] as const, ["te", "trailers"] as const];
  const path = "/greenhouse.v1.GreenhouseService/WaterBed";
  const got = await exchangeHttp2(proxy.address, { httpMethod: "POST", path, header, body: bodyOf(type, request) });
  return { forwarded, got };
}

const connect = "application/proto";

/** Returns the start of a body with a message. */
function bodyOf(type: string, message: Buffer): Buffer {
  return type === connect ? message : envelope(message);
}

/** Returns a response's error code, as its protocol sends it, or `undefined` without an error. */
function codeOf({ header, trailer, body }: HttpResponse): string | undefined {
  const [, code] = /(?:grpc-status: ?|"code":")(\w+)/.exec(body.toString()) ?? [];
  return fieldValue([...header, ...trailer], "grpc-status") ?? code;
}

const onRequest =
  (change: (request: UnaryRequest) => UnaryRequest): Interceptor =>
  (next) =>
  (request) =>
    next(request.stream ? request : change(request));
const onResponse =
  (change: (response: UnaryResponse) => UnaryResponse): Interceptor =>
  (next) =>
  async (request) => {
    const response = await next(request);
    return response.stream ? response : change(response);
  };

const same = <T>(value: T): T => value;
const copy = <T>(value: T): T => ({ ...value });

const interceptors = [
  { name: "calls next", interceptor: onRequest(same), sent: received, got: received },
  {
    name: "sets a header field",
    interceptor: onRequest((request) => (request.header.set("x-zone", "south"), request)),
    sent: received,
    got: received,
  },
  {
    name: "replaces the header of the response",
    interceptor: onResponse((response) => Object.assign(response, { header: new Headers({ "x-zone": "south" }) })),
    sent: received,
    got: received,
  },
  {
    name: "reads the request",
    interceptor: onRequest((request) => (void request.message.$typeName, request)),
    sent: encoded,
    got: received,
  },
  { name: "copies the request", interceptor: onRequest(copy), sent: encoded, got: received },
  {
    name: "replaces the request",
    interceptor: onRequest((request) =>
      Object.assign(request, { message: create(WaterBedRequestSchema, { note: "b" }) }),
    ),
    sent: encoded,
    got: received,
  },
  {
    name: "reads the response",
    interceptor: onResponse((response) => (void response.message.$typeName, response)),
    sent: received,
    got: encoded,
  },
  {
    name: "copies the response",
    interceptor: onResponse(copy),
    sent: received,
    got: encoded,
  },
  {
    name: "changes both",
    interceptor: ((next) => onRequest(copy)(onResponse(copy)(next))) satisfies Interceptor,
    sent: encoded,
    got: encoded,
  },
];

describe.each([
  { type: "application/grpc+proto", invalidArgument: "3", internal: "13" },
  { type: "application/grpc-web+proto", invalidArgument: "3", internal: "13" },
  { type: connect, invalidArgument: "invalid_argument", internal: "internal" },
])("an interceptor of a call with $type", ({ type, invalidArgument, internal }) => {
  test.each(interceptors)("that $name decodes only the messages that it reads", async ({ interceptor, sent, got }) => {
    const { forwarded, got: response } = await call(interceptor, type, received, received);
    const want = bodyOf(type, got);
    expect([forwarded, response.body.subarray(0, want.byteLength)]).toEqual([envelope(sent), want]);
  });

  test("gets InvalidArgument when it reads a malformed request, which is not forwarded", async () => {
    const { forwarded, got } = await call(onRequest(copy), type, malformed, received);
    expect([forwarded.byteLength, codeOf(got)]).toEqual([0, invalidArgument]);
  });

  test("gets Internal when it reads a malformed response", async () => {
    const { got } = await call(onResponse(copy), type, received, malformed);
    expect(codeOf(got)).toBe(internal);
  });

  test("passes on malformed messages that it does not read", async () => {
    const { forwarded, got } = await call(onRequest(same), type, malformed, malformed);
    const want = bodyOf(type, malformed);
    expect([forwarded, got.body.subarray(0, want.byteLength)]).toEqual([envelope(malformed), want]);
  });
});
