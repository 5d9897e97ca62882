import { create, type Message } from "@bufbuild/protobuf";
import type { Interceptor, UnaryRequest, UnaryResponse } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
// oxfmt-ignore
import { ReadingSchema, WaterBedRequestSchema, WatchReadingsRequestSchema
} from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { exchangeHttp2, fieldValue, frameType, type HttpResponse } from "@protoport/testing/http";
import { GreenhouseService, envelope, grpcResponse, startProxy, startScriptedServer } from "@protoport/testing/proxy";

// A message with one field twice loses the first value when the message is decoded and encoded.
const [received, encoded] = [Buffer.from("\x1a\x01a\x1a\x01b"), Buffer.from("\x1a\x01b")];
const changed = Buffer.from("\x1a\x01c");
const malformed = Buffer.from("\x1a\x7f");
const waterBed = { rpc: "WaterBed", requests: 1, responses: 1 };

/** Calls an RPC through a proxy with an interceptor. Returns the messages that the upstream gets, and the response. */
async function call(interceptor: Interceptor, type: string, request: Buffer, response: Buffer, kind = waterBed) {
  let forwarded = Buffer.alloc(0);
  await using upstream = await startScriptedServer({
    request: (connection, id) => {
      const trailer = [["grpc-status", "0"] as const, ["x-zone", "south"] as const];
      connection.send(...grpcResponse(id, bodyOf("", response, kind.responses), trailer));
    },
    frame: (_, { type: sent, payload }) => {
      if (sent === frameType.data) forwarded = Buffer.concat([forwarded, payload]);
    },
  });
  await using proxy = await startProxy(upstream.baseUrl, [GreenhouseService.file], { interceptors: [interceptor] });
  const header = [["content-type", type] as const, ["te", "trailers"] as const];
  const path = `/greenhouse.v1.GreenhouseService/${kind.rpc}`;
  const body = bodyOf(type, request, kind.requests);
  const got = await exchangeHttp2(proxy.address, { httpMethod: "POST", path, header, body });
  return { forwarded, got };
}

const connect = "application/proto";

/** Returns a body with a message, or its start. @param count - how often the message is repeated */
const bodyOf = (type: string, message: Buffer, count = 1): Buffer =>
  type === connect ? message : Buffer.concat(Array(count).fill(envelope(message)));

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
const water = <T extends { readonly message: object }>(value: T): T => {
  Object.assign(value.message, { note: "c" });
  return value;
};

// oxfmt-ignore
const interceptors = [
  { name: "calls next", interceptor: onRequest(same), sent: received, got: received },
  { name: "sets a header field", interceptor: onRequest((request) => (request.header.set("x-zone", "south"), request)),
    sent: received, got: received },
  { name: "replaces the response's header",
    interceptor: onResponse((response) => Object.assign(response, { header: new Headers({ "x-zone": "south" }) })),
    sent: received, got: received },
  { name: "reads the request", interceptor: onRequest((request) => (void request.message.$typeName, request)),
    sent: encoded, got: received },
  { name: "copies the request", interceptor: onRequest(copy), sent: encoded, got: received },
  { name: "replaces the request", interceptor: onRequest((request) =>
      Object.assign(request, { message: create(WaterBedRequestSchema, { note: "b" }) }),
    ), sent: encoded, got: received },
  { name: "reads the response", interceptor: onResponse((response) => (void response.message.$typeName, response)),
    sent: received, got: encoded },
  { name: "copies the response", interceptor: onResponse(copy), sent: received, got: encoded },
  { name: "changes request and response",
    interceptor: ((next) => onRequest(copy)(onResponse(copy)(next))) satisfies Interceptor, sent: encoded,
    got: encoded },
  { name: "sets a field of request and response",
    interceptor: ((next) => onRequest(water)(onResponse(water)(next))) satisfies Interceptor, sent: changed,
    got: changed },
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

const onRequests =
  (change: (messages: AsyncIterable<Message>) => AsyncIterable<Message>): Interceptor =>
  (next) =>
  (request) =>
    next(request.stream ? { ...request, message: change(request.message) } : request);
const onResponses =
  (change: (messages: AsyncIterable<Message>) => AsyncIterable<Message>): Interceptor =>
  (next) =>
  async (request) => {
    const response = await next(request);
    return response.stream ? { ...response, message: change(response.message) } : response;
  };

async function* read(messages: AsyncIterable<Message>): AsyncGenerator<Message> {
  yield* messages;
}

/** Replaces each message by a new message that equals the decoded message. */
async function* replaced(messages: AsyncIterable<Message>): AsyncGenerator<Message> {
  for await (const { $typeName } of messages) {
    const isRequest = $typeName === WatchReadingsRequestSchema.typeName;
    yield isRequest ? create(WatchReadingsRequestSchema, { sensor: "b" }) : create(ReadingSchema, { sensor: "b" });
  }
}

// Messages with field 1 twice. The field is an integer in the response of `RecordReadings`, and a string in the others.
const [twice, once] = [Buffer.from("\n\u0001a\n\u0001b"), Buffer.from("\n\u0001b")];
const [countedTwice, countedOnce] = [Buffer.of(8, 1, 8, 2), Buffer.of(8, 2)];
const endless = Buffer.from("\n\u007f");

const kinds = [
  { rpc: "WatchReadings", requests: 1, responses: 2, unread: twice, read: once },
  { rpc: "RecordReadings", requests: 2, responses: 1, unread: countedTwice, read: countedOnce },
  { rpc: "ControlClimate", requests: 2, responses: 2, unread: twice, read: once },
];
const streamTypes = [
  { type: "application/grpc+proto", invalidArgument: "3", internal: "13" },
  { type: "application/grpc-web+proto", invalidArgument: "3", internal: "13" },
  { type: "application/connect+proto", invalidArgument: "invalid_argument", internal: "internal" },
];
// oxfmt-ignore
const streamInterceptors = [
  { name: "calls next", interceptor: onRequests(same), readsRequests: false, readsResponses: false },
  { name: "sets a header field", interceptor: ((next) => (request) => {
      request.header.set("x-zone", "south");
      return next(request);
    }) satisfies Interceptor, readsRequests: false, readsResponses: false },
  { name: "copies request and response",
    interceptor: ((next) => onRequests(same)(onResponses(same)(next))) satisfies Interceptor, readsRequests: false,
    readsResponses: false },
  { name: "reads requests", interceptor: onRequests(read), readsRequests: true, readsResponses: false },
  { name: "replaces requests", interceptor: onRequests(replaced), readsRequests: true, readsResponses: false },
  { name: "reads responses", interceptor: onResponses(read), readsRequests: false, readsResponses: true },
  { name: "reads requests and responses",
    interceptor: ((next) => onRequests(read)(onResponses(read)(next))) satisfies Interceptor, readsRequests: true,
    readsResponses: true },
];

describe.each(kinds)("an interceptor of $rpc streams", (kind) => {
  const { requests, responses } = kind;
  describe.each(streamTypes)("with $type", ({ type, invalidArgument, internal }) => {
    test.each(streamInterceptors)(
      "that $name decodes only the streams that it reads",
      async ({ interceptor, readsRequests, readsResponses }) => {
        const { forwarded, got } = await call(interceptor, type, twice, kind.unread, kind);
        const want = bodyOf(type, readsResponses ? kind.read : kind.unread, responses);
        const sent = bodyOf(type, readsRequests ? once : twice, requests);
        expect([forwarded, got.body.subarray(0, want.byteLength)]).toEqual([sent, want]);
      },
    );

    test("gets InvalidArgument when it reads a malformed request, which is not forwarded", async () => {
      const { forwarded, got } = await call(onRequests(read), type, endless, kind.unread, kind);
      expect([forwarded.byteLength, codeOf(got)]).toEqual([0, invalidArgument]);
    });

    test("gets Internal when it reads a malformed response", async () => {
      const { got } = await call(onResponses(read), type, twice, endless, kind);
      expect(codeOf(got)).toBe(internal);
    });

    test("passes on malformed messages that it does not read", async () => {
      const { forwarded, got } = await call(onRequests(same), type, endless, endless, kind);
      const want = bodyOf(type, endless, responses);
      expect([forwarded, got.body.subarray(0, want.byteLength)]).toEqual([bodyOf(type, endless, requests), want]);
    });
  });
});

test("a server-streaming call forwards only the first request from an interceptor", async () => {
  const interceptor = onRequests(async function* (messages) {
    yield* messages;
    yield create(WatchReadingsRequestSchema, { sensor: "c" });
  });
  const [watch] = kinds;
  const { forwarded } = await call(interceptor, "application/grpc+proto", twice, twice, watch);
  expect(forwarded).toEqual(envelope(once));
});

test("a server-streaming call is not forwarded without a request from its interceptor", async () => {
  const interceptor = onRequests(async function* () {});
  const [watch] = kinds;
  const { forwarded, got } = await call(interceptor, "application/grpc+proto", twice, twice, watch);
  expect([forwarded.byteLength, codeOf(got)]).toEqual([0, "12"]);
});

test("an interceptor gets the trailer of a client-streaming call", async () => {
  const trailers: (string | null)[] = [];
  const interceptor: Interceptor = (next) => async (request) => {
    const response = await next(request);
    trailers.push(response.trailer.get("x-zone"));
    return response;
  };
  const [, record] = kinds;
  await call(interceptor, "application/grpc+proto", twice, countedTwice, record);
  expect(trailers).toEqual(["south"]);
});
