import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { GreenhouseService, ReadingSchema } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGrpcTransport, createUpstream } from "../../src/client/index.ts";
import { errorCodeOf } from "../../../gateway/src/index.ts";
import { type Field, fieldValue } from "../../../testing/src/carriers/exchange.ts";
import { exchangeHttp1 } from "../../../testing/src/carriers/http1-connection.ts";
import { exchangeHttp2 } from "../../../testing/src/carriers/http2-connection.ts";
import {
  dataFrame,
  type Frame,
  frameFlag,
  headersFrame,
  resetFrame,
} from "../../../testing/src/carriers/http2-frames.ts";
import { waitLimitMs, within } from "../../../testing/src/deadline.ts";
import { startProxy } from "../../../testing/src/gateway/proxy.ts";
import {
  envelope,
  grpcAnswer,
  grpcHead,
  type ScriptedServer,
  startScriptedServer,
} from "../../../testing/src/gateway/scripted-http2-server.ts";
import { someTurns } from "../../../testing/src/some-turns.ts";
import { type HostileRow, hostileRows } from "../client/hostile-rows.ts";

// What callers of a proxy get whose upstream breaks the rules, in two protocols, and that it was asked once for each.

/** What gRPC's clients may tell their program, but no caller of a proxy: it would mean that there is no such RPC. */
const cardinality = new Set(["no message", "a success that is only a header", "two messages"]);
/** What only those see who decode it. */
const undecodable = "a message of another type";

const httpStatuses: Readonly<Partial<Record<Code, number>>> = {
  [Code.Canceled]: 499,
  [Code.Unknown]: 500,
  [Code.NotFound]: 404,
  [Code.PermissionDenied]: 403,
  [Code.ResourceExhausted]: 429,
  [Code.FailedPrecondition]: 400,
  [Code.Aborted]: 409,
  [Code.Unimplemented]: 501,
  [Code.Internal]: 500,
  [Code.Unavailable]: 503,
  [Code.Unauthenticated]: 401,
};

function codeOf({ name, want }: HostileRow): Code | undefined {
  return cardinality.has(name) ? Code.Internal : want;
}

function limitsOf({ options: { readMaxBytes } = {} }: HostileRow): { readonly readMaxBytes?: number } {
  return readMaxBytes === undefined ? {} : { readMaxBytes };
}

test.each(hostileRows)("a caller of gRPC whose upstream has $name gets what it should", async (row) => {
  await using upstream = await startScriptedServer(row.script);
  await using proxy = await startProxy(upstream.baseUrl, [GreenhouseService.file], limitsOf(row));
  await using transport = createGrpcTransport({ baseUrl: proxy.baseUrl });
  const answered = createClient(GreenhouseService, transport).waterBed({ bed: 7n, liters: 3 });
  const outcome = await within(
    answered.then(
      ({ bed }) => bed,
      (error: unknown) => error,
    ),
    "the end of the call",
  );
  const want = codeOf(row);
  if (want === undefined) expect(outcome).toBe(7n);
  else {
    const error = ConnectError.from(outcome);
    // The bytes of an undecodable message go through, and the caller finds out.
    expect(Code[error.code]).toBe(Code[row.name === undecodable ? Code.Internal : want]);
    if (want === Code.Unavailable) expect(error.rawMessage).toBe("the service is not available");
    else expect(error.rawMessage).toContain(row.says ?? "");
    expect(error.message).not.toMatch(/secret|127\.0\.0\.1/);
  }
  expect(upstream.requests).toBe(row.requests === 0 ? upstream.requests : (row.requests ?? 1));
});

test.each(hostileRows)("a caller of REST whose upstream has $name gets what it should", async (row) => {
  await using upstream = await startScriptedServer(row.script);
  const causes: unknown[] = [];
  await using proxy = await startProxy(upstream.baseUrl, [GreenhouseService.file], {
    ...limitsOf(row),
    onError: (_, { cause }) => void causes.push(cause),
  });
  const answer = await exchangeHttp1(proxy.address, {
    httpMethod: "POST",
    path: "/beds/7:water",
    header: [["content-type", "application/json"]],
    body: Buffer.from('{"liters":3}'),
  });
  const want = codeOf(row);
  const status = row.name === undecodable ? 502 : want === undefined ? 200 : httpStatuses[want];
  const text = answer.body.toString();
  expect(answer.httpStatus, text).toBe(status);
  expect(text).not.toMatch(/secret|127\.0\.0\.1/);
  expect(JSON.parse(text)).toMatchObject(want === undefined ? { bed: "7" } : { code: want });
  const isLost = want === Code.Unavailable;
  if (row.name === undecodable) {
    const message = "the answer is not a valid greenhouse.v1.WaterBedResponse";
    expect(causes).toMatchObject([{ message, cause: expect.any(Error) }]);
  }
  expect(fieldValue(answer.header, "retry-after")).toBe(isLost ? "1" : undefined);
  expect(upstream.requests).toBe(row.requests === 0 ? upstream.requests : (row.requests ?? 1));
});

const reading = envelope(toBinary(ReadingSchema, create(ReadingSchema, { sensor: "a" })));

const malformed = "the answer of the service is malformed: ";
const ours = "ERR_UPSTREAM_ANSWER";

test.each<{
  readonly name: string;
  readonly rpc?: string;
  readonly frames: (id: number) => readonly Frame[];
  /** The identifier is in the log alone. */
  readonly want: readonly [code: Code | undefined, message: string, errorCode?: string];
  /** How often the field x-a comes. */
  readonly fields?: number;
}>([
  {
    name: "a success that is only a header",
    frames: (id) => [headersFrame(id, [...grpcHead, ["grpc-status", "0"], ["x-a", "1"]], frameFlag.endStream)],
    want: [undefined, ""],
    fields: 1,
  },
  {
    name: "an error that is only a header",
    frames: (id) => [headersFrame(id, [...grpcHead, ["grpc-status", "5"], ["x-a", "1"]], frameFlag.endStream)],
    want: [Code.NotFound, ""],
    fields: 1,
  },
  {
    name: "reserved flags after a message",
    frames: (id) => grpcAnswer(id, Buffer.concat([reading, envelope(Buffer.alloc(0), 2)])),
    want: [Code.Internal, `${malformed}the answer is not as it should be: the message has reserved flags 0b10`, ours],
  },
  {
    name: "a message over the limit",
    frames: (id) => [headersFrame(id, grpcHead), dataFrame(id, Buffer.of(0, 0, 0x50, 0, 0))],
    want: [Code.ResourceExhausted, `${malformed}message is larger than 4194304 bytes`, ours],
  },
  {
    name: "a reset that cancels it",
    frames: (id) => [headersFrame(id, grpcHead), dataFrame(id, reading), resetFrame(id, 8)],
    want: [Code.Canceled, "the server has canceled the call"],
  },
  {
    name: "no message where one belongs",
    rpc: "RecordReadings",
    frames: (id) => [headersFrame(id, [...grpcHead, ["grpc-status", "0"]], frameFlag.endStream)],
    want: [Code.Internal, "the answer of the service has no message", ours],
  },
  {
    name: "two messages where one belongs",
    rpc: "RecordReadings",
    frames: (id) => grpcAnswer(id, Buffer.concat([reading, reading])),
    want: [Code.Internal, "the answer of the service has more than one message", ours],
  },
])(
  "a caller whose upstream answers a stream with $name gets what it should",
  async ({ rpc, frames, want, fields = 0 }) => {
    await using upstream = await startScriptedServer({ request: (connection, id) => connection.send(...frames(id)) });
    const codes: unknown[] = [];
    const onError = (_: unknown, error: ConnectError): void => void codes.push(errorCodeOf(error));
    await using proxy = await startProxy(upstream.baseUrl, [GreenhouseService.file], { onError });
    const answer = await exchangeHttp2(proxy.address, {
      httpMethod: "POST",
      path: `/greenhouse.v1.GreenhouseService/${rpc ?? "WatchReadings"}`,
      header: [
        ["content-type", "application/grpc"],
        ["te", "trailers"],
      ],
      body: envelope(Buffer.alloc(0)),
    });
    const got = [...answer.header, ...answer.trailer];
    const [code = 0, message, errorCode] = want;
    expect(fieldValue(got, "grpc-status")).toBe(String(code));
    expect(decodeURIComponent(fieldValue(got, "grpc-message") ?? "")).toBe(message);
    expect(got.filter(([name]) => name === "x-a")).toHaveLength(fields);
    expect(codes).toEqual(code === 0 ? [] : [errorCode]);
  },
);

test("a caller whose upstream is lost in the middle of a stream is told that it is not available", async () => {
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
  await expect(within(messages.next(), "the end")).rejects.toMatchObject({
    code: Code.Unavailable,
    rawMessage: "the service is not available",
  });
});

test("a drain lasts as long as the calls, although the program has opened the connections itself", async () => {
  const asked = Promise.withResolvers<() => void>();
  await using upstream = await startScriptedServer({
    request: (connection, id) =>
      asked.resolve(() => connection.send(headersFrame(id, unimplemented, frameFlag.endStream))),
  });
  await using connections = createUpstream({ addresses: upstream.baseUrl });
  const { proxy, address } = await startProxy(upstream.baseUrl, [GreenhouseService.file], {
    upstreamOptions: { upstream: connections },
  });
  const call = exchangeHttp1(address, { httpMethod: "POST", path: "/beds/7:water", header: [] });
  const answer = await within(asked.promise, "the call");
  let isDrained = false;
  const drained = proxy.drain(waitLimitMs).then(() => (isDrained = true));
  await someTurns();
  expect(isDrained).toBe(false);
  answer();
  expect((await call).httpStatus).toBe(501);
  await drained;
});

/** Starts a server without RPCs that notes when its connection has ended. */
async function startWatched(): Promise<{ readonly ended: string[]; readonly upstream: ScriptedServer }> {
  const ended: string[] = [];
  const upstream = await startScriptedServer({
    request: (connection, id) => {
      if (connection.requests === 1) connection.socket.once("end", () => ended.push("the connection"));
      connection.send(headersFrame(id, unimplemented, frameFlag.endStream));
    },
  });
  return { ended, upstream };
}

describe("its connection to the upstream has ended", () => {
  test("when a proxy is closed", async () => {
    const { ended, upstream } = await startWatched();
    const { proxy, address } = await startProxy(upstream.baseUrl, [GreenhouseService.file]);
    const answer = await exchangeHttp1(address, { httpMethod: "POST", path: "/beds/7:water", header: [] });
    expect(answer.httpStatus).toBe(501);
    await proxy.close();
    ended.push("the proxy");
    expect(ended).toEqual(["the connection", "the proxy"]);
    await upstream[Symbol.asyncDispose]();
  });

  test("when a transport is disposed of", async () => {
    const { ended, upstream } = await startWatched();
    const transport = createGrpcTransport({ baseUrl: upstream.baseUrl });
    const answered = createClient(GreenhouseService, transport).waterBed({});
    await expect(answered).rejects.toMatchObject({ code: Code.Unimplemented });
    await transport[Symbol.asyncDispose]();
    ended.push("the transport");
    expect(ended).toEqual(["the connection", "the transport"]);
    await upstream[Symbol.asyncDispose]();
  });
});

const unimplemented: readonly Field[] = [
  [":status", "200"],
  ["content-type", "application/grpc"],
  ["grpc-status", "12"],
];
