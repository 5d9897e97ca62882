import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { GreenhouseService, ReadingSchema } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGrpcTransport, createUpstream, type GrpcTransportOptions } from "../../../../src/client/index.ts";
import { errorCodeOf } from "../../../../../gateway/src/index.ts";
import { exchangeHttp1, exchangeHttp2, type Field, fieldValue, dataFrame, type Frame } from "@protoport/testing/http";
import { frameFlag, headersFrame, resetFrame, waitLimitMs, waitSomeTurns, within } from "@protoport/testing";
import { startProxy, envelope, grpcHead, grpcResponse, startScriptedServer } from "@protoport/testing/proxy";
import { type HostileCase, hostileCases } from "../client/hostile-cases.ts";

/** Cases that are Unimplemented for a gRPC client, but Internal behind a proxy, because the proxy has the RPC. */
const cardinality = new Set(["no message", "a trailers-only success", "two messages"]);
/** Fails only if the proxy decodes messages for the caller. */
const undecodable = "a message of another type";

// oxfmt-ignore
const httpStatuses: Readonly<Partial<Record<Code, number>>> = { [Code.Canceled]: 499, [Code.Unknown]: 500,
  [Code.NotFound]: 404, [Code.PermissionDenied]: 403, [Code.ResourceExhausted]: 429, [Code.FailedPrecondition]: 400,
  [Code.Aborted]: 409, [Code.Unimplemented]: 501, [Code.Internal]: 500, [Code.Unavailable]: 503,
  [Code.Unauthenticated]: 401 };

const codeOf = ({ name, want }: HostileCase): Code | undefined => (cardinality.has(name) ? Code.Internal : want);
const limitsOf = ({ options: { readMaxBytes } = {} }: HostileCase): { readonly readMaxBytes?: number } =>
  readMaxBytes === undefined ? {} : { readMaxBytes };

/** Returns the bed in the response to a call, or the call's error. */
async function water(options: GrpcTransportOptions): Promise<unknown> {
  await using transport = createGrpcTransport(options);
  const call = createClient(GreenhouseService, transport).waterBed({ bed: 7n, liters: 3 });
  const outcome = call.then(({ bed }) => bed).catch((error: unknown) => error);
  return await within(outcome, "the end of the call");
}

test.each(hostileCases)(
  "if the server sends $name, the call gets the matching gRPC status",
  async ({ script, want, message, requests = 1, options }) => {
    await using server = await startScriptedServer(script);
    const outcome = await water({ baseUrl: server.baseUrl, ...options });
    if (want === undefined) expect(outcome).toBe(7n);
    else {
      expect(outcome).toBeInstanceOf(ConnectError);
      const { code, rawMessage } = ConnectError.from(outcome);
      expect(ConnectError.from(outcome).message).not.toContain("secret");
      expect([Code[code], rawMessage]).toEqual([Code[want], expect.stringContaining(message ?? "")]);
    }
    // If a connection fails at its start, the request may or may not have arrived.
    if (requests > 0) expect(server.requests).toBe(requests);
  },
);

test.each(hostileCases)(
  "if the upstream sends $name, a gRPC caller gets the matching gRPC status",
  async (testCase) => {
    await using upstream = await startScriptedServer(testCase.script);
    await using proxy = await startProxy(upstream.baseUrl, [GreenhouseService.file], limitsOf(testCase));
    const outcome = await water({ baseUrl: proxy.baseUrl });
    const want = codeOf(testCase);
    if (want === undefined) expect(outcome).toBe(7n);
    else {
      const error = ConnectError.from(outcome);
      // The proxy forwards an undecodable message's bytes, and the caller fails to decode them.
      expect(Code[error.code]).toBe(Code[testCase.name === undecodable ? Code.Internal : want]);
      if (want === Code.Unavailable) expect(error.rawMessage).toBe("the service is not available");
      else expect(error.rawMessage).toContain(testCase.message ?? "");
      expect(error.message).not.toMatch(/secret|127\.0\.0\.1/);
    }
    expect(upstream.requests).toBe(testCase.requests === 0 ? upstream.requests : (testCase.requests ?? 1));
  },
);

test.each(hostileCases)(
  "if the upstream sends $name, a REST caller gets the matching HTTP status",
  async (testCase) => {
    await using upstream = await startScriptedServer(testCase.script);
    const causes: unknown[] = [];
    await using proxy = await startProxy(upstream.baseUrl, [GreenhouseService.file], {
      ...limitsOf(testCase),
      onError: (_, { cause }) => void causes.push(cause),
    });
    const header = [["content-type", "application/json"]] as const;
    const request = { httpMethod: "POST", path: "/beds/7:water", header, body: Buffer.from('{"liters":3}') };
    const response = await exchangeHttp1(proxy.address, request);
    const want = codeOf(testCase);
    const status = testCase.name === undecodable ? 502 : want === undefined ? 200 : httpStatuses[want];
    const text = response.body.toString();
    expect(response.httpStatus, text).toBe(status);
    expect(text).not.toMatch(/secret|127\.0\.0\.1/);
    expect(JSON.parse(text)).toMatchObject(want === undefined ? { bed: "7" } : { code: want });
    const isLost = want === Code.Unavailable;
    if (testCase.name === undecodable) {
      const message = "the response is not a valid greenhouse.v1.WaterBedResponse";
      expect(causes).toMatchObject([{ message, cause: expect.any(Error) }]);
    }
    expect(fieldValue(response.header, "retry-after")).toBe(isLost ? "1" : undefined);
    expect(upstream.requests).toBe(testCase.requests === 0 ? upstream.requests : (testCase.requests ?? 1));
  },
);

const reading = envelope(toBinary(ReadingSchema, create(ReadingSchema, { sensor: "a" })));
const malformed = "the response of the service is malformed: ";
const upstreamError = "ERR_UPSTREAM_RESPONSE";

test.each<{
  readonly name: string;
  readonly rpc?: string;
  readonly frames: (id: number) => readonly Frame[];
  /** The identifier is only logged, not sent. */
  readonly want: readonly [code: Code | undefined, message: string, errorCode?: string];
  /** How many fields x-a the caller gets. */
  readonly fields?: number;
}>(
  // oxfmt-ignore
  [
    { name: "a trailers-only success",
      frames: (id) => [headersFrame(id, [...grpcHead, ["grpc-status", "0"], ["x-a", "1"]], frameFlag.endStream)],
      want: [undefined, ""], fields: 1 },
    { name: "a trailers-only error",
      frames: (id) => [headersFrame(id, [...grpcHead, ["grpc-status", "5"], ["x-a", "1"]], frameFlag.endStream)],
      want: [Code.NotFound, ""], fields: 1 },
    { name: "reserved envelope flags after a message",
      frames: (id) => grpcResponse(id, Buffer.concat([reading, envelope(Buffer.alloc(0), 2)])),
      want: [Code.Internal, `${malformed}the response is not valid: the message has reserved flags 0b10`,
        upstreamError] },
    { name: "a message over the limit",
      frames: (id) => [headersFrame(id, grpcHead), dataFrame(id, Buffer.of(0, 0, 0x50, 0, 0))],
      want: [Code.ResourceExhausted, `${malformed}the message is larger than 4194304 bytes`, upstreamError] },
    { name: "a CANCEL reset", frames: (id) => [headersFrame(id, grpcHead), dataFrame(id, reading), resetFrame(id, 8)],
      want: [Code.Canceled, "the server cancelled the call"] },
    { name: "no message instead of one", rpc: "RecordReadings",
      frames: (id) => [headersFrame(id, [...grpcHead, ["grpc-status", "0"]], frameFlag.endStream)],
      want: [Code.Internal, "the response of the service has no message", upstreamError] },
    { name: "two messages instead of one", rpc: "RecordReadings",
      frames: (id) => grpcResponse(id, Buffer.concat([reading, reading])),
      want: [Code.Internal, "the response of the service has more than one message", upstreamError] },
  ],
)(
  "if an upstream responds to a stream with $name, the caller gets the matching status",
  async ({ rpc, frames, want, fields = 0 }) => {
    await using upstream = await startScriptedServer({ request: (connection, id) => connection.send(...frames(id)) });
    const codes: unknown[] = [];
    const onError = (_: unknown, error: ConnectError): void => void codes.push(errorCodeOf(error));
    await using proxy = await startProxy(upstream.baseUrl, [GreenhouseService.file], { onError });
    const response = await exchangeHttp2(proxy.address, {
      httpMethod: "POST",
      path: `/greenhouse.v1.GreenhouseService/${rpc ?? "WatchReadings"}`,
      header: Object.entries({ "content-type": "application/grpc", te: "trailers" }),
      body: envelope(Buffer.alloc(0)),
    });
    const received = [...response.header, ...response.trailer];
    const [code = 0, message, errorCode] = want;
    expect(fieldValue(received, "grpc-status")).toBe(String(code));
    expect(decodeURIComponent(fieldValue(received, "grpc-message") ?? "")).toBe(message);
    expect(received.filter(([name]) => name === "x-a")).toHaveLength(fields);
    expect(codes).toEqual(code === 0 ? [] : [errorCode]);
  },
);

test("a stream fails with Unavailable when its upstream connection is lost", async () => {
  await using upstream = await startScriptedServer({
    request: (connection, id) => {
      connection.send(headersFrame(id, grpcHead), dataFrame(id, reading));
      connection.socket.end();
    },
  });
  await using proxy = await startProxy(upstream.baseUrl, [GreenhouseService.file]);
  await using transport = createGrpcTransport({ baseUrl: proxy.baseUrl });
  const messages = createClient(GreenhouseService, transport).watchReadings({})[Symbol.asyncIterator]();
  expect((await within(messages.next(), "the first message")).value).toMatchObject({ sensor: "a" });
  const lost = { code: Code.Unavailable, rawMessage: "the service is not available" };
  await expect(within(messages.next(), "the end")).rejects.toMatchObject(lost);
});

test("a drain waits for calls of an upstream that the application created", async () => {
  const responder = Promise.withResolvers<() => void>();
  await using upstream = await startScriptedServer({
    request: (connection, id) =>
      responder.resolve(() => connection.send(headersFrame(id, unimplemented, frameFlag.endStream))),
  });
  await using connections = createUpstream({ addresses: upstream.baseUrl });
  const upstreamOptions = { upstream: connections };
  const { proxy, address } = await startProxy(upstream.baseUrl, [GreenhouseService.file], { upstreamOptions });
  const call = exchangeHttp1(address, { httpMethod: "POST", path: "/beds/7:water", header: [] });
  const respond = await within(responder.promise, "the call");
  let isDrained = false;
  const drained = proxy.drain(waitLimitMs).then(() => (isDrained = true));
  await waitSomeTurns();
  expect(isDrained).toBe(false);
  respond();
  expect((await call).httpStatus).toBe(501);
  await drained;
});

const unimplemented: readonly Field[] = [...grpcHead, ["grpc-status", "12"]];
