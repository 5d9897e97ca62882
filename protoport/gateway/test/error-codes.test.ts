import { createServer } from "node:http";
import { createServer as createTcpServer } from "node:net";
import { gzipSync } from "node:zlib";
import { create } from "@bufbuild/protobuf";
import { ConnectError, createHandlerContext, type Interceptor, type ServiceImpl } from "@connectrpc/connect";
import { afterAll, expect, test } from "vitest";
import { GreenhouseService } from "../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { requireOwnDescriptors } from "../src/serve/create-rpcs.ts";
import { createHttp1Server } from "../src/engine/http1-server.ts";
import { defaultLimits } from "../src/http/exchange/index.ts";
import { BacklogBudget } from "../src/engine/backlog.ts";
import { createUpstream, type Upstream } from "../../proxy/src/client/index.ts";
import { errorCodeOf, type GatewayErrorCode, type GatewayOptions } from "../src/index.ts";
// oxfmt-ignore
import { type Address, createTestGateway, exchangeHttp1, exchangeHttp2, type Field, type HttpRequest, openHttp1,
  startGreenhouse, startOnLoopback, throws, waterBedProcedure, within } from "@protoport/testing";
import { HealthCheckRequestSchema } from "../src/protobuf/gen/grpc/health/v1/health_pb.ts";
import { createHealthService, Health, Readiness } from "../src/health/index.ts";
import { reserveWindow } from "../src/protocols/compression/decode-pieces.ts";
import { startSignup } from "../../testing/src/gateway/signup.ts";
import { openValidation } from "../src/validation/index.ts";
import { startProxy } from "../../testing/src/gateway/proxy.ts";
// oxfmt-ignore
import { envelope, grpcResponse, type Script, startScriptedServer
} from "../../testing/src/gateway/scripted-http2-server.ts";

// A request or an action causes each gateway error identifier.

/** A request that is refused or fails, and the gateway to which it is sent. */
interface Refused {
  /** Sent over HTTP/1.1, unchanged if it is a string. Over HTTP/2 if it is a gRPC request. */
  readonly sent: HttpRequest | string;
  readonly options?: Partial<GatewayOptions>;
  readonly implementation?: Partial<ServiceImpl<typeof GreenhouseService>>;
  /** Prepares anything else that is required, until it is disposed of. */
  readonly prepare?: () => Disposable;
}

/** Causes the error without a request, and returns the identifier. */
type Alone = () => unknown;
const get = (path: string, ...header: Field[]): HttpRequest => ({ httpMethod: "GET", path, header });
const water = (body: string | Uint8Array, ...header: Field[]): HttpRequest => ({
  httpMethod: "POST",
  path: "/beds/7:water",
  header: [["content-type", "application/json"], ...header],
  body: Buffer.from(body),
});
const fails = throws(new Error("no water"));
const noFields: Interceptor = (next) => async (request) => Object.assign(await next(request), { header: 1 });

// oxfmt-ignore
const rows: Readonly<Record<GatewayErrorCode, Refused | Alone>> = {
  ERR_HTTP_INVALID: { sent: "HELLO\r\n\r\n" },
  ERR_HTTP_UNSUPPORTED: { sent: "GET / HTTP/2.1\r\nhost: x\r\n\r\n" },
  ERR_URL_TOO_LONG: { sent: get(`/${"x".repeat(9_000)}`) },
  ERR_HEADER_TOO_LARGE: { sent: get("/", ["foo", "x".repeat(17_000)]) },
  ERR_REQUEST_TIMEOUT: { sent: "GET / HTTP/1.1\r\n", options: { limits: { headerTimeoutMs: 200 } } },
  ERR_NO_ROUTE: { sent: get("/nothing") },
  ERR_METHOD_NOT_ALLOWED: { sent: get("/beds/7:water") },
  ERR_METHOD_UNKNOWN: { sent: { ...water("{}"), httpMethod: "BREW" } },
  ERR_CROSS_SITE: { sent: { ...water("{}"), header: [["sec-fetch-site", "cross-site"]] } },
  ERR_CONTENT_TYPE: { sent: { ...water("{}"), header: [["content-type", "text/plain"]] } },
  ERR_PATH_INVALID: { sent: { ...water("{}"), path: "/beds/seven:water" } },
  ERR_QUERY_INVALID: { sent: get("/sensors/a/reading?colour=green") },
  ERR_RULES_VIOLATED: codeOfViolation,
  ERR_BODY_UNEXPECTED: { sent: { ...get("/sensors/a/reading"), body: Buffer.from("x") } },
  ERR_BODY_TOO_LARGE: { sent: water('{"liters":1}'), options: { readMaxBytes: 8 } },
  ERR_BODY_CONSUMED: codeOfReadBody,
  ERR_ENCODING_UNSUPPORTED: { sent: water("{}", ["content-encoding", "lzw"]) },
  ERR_ENCODING_INVALID: { sent: water(gzipSync("{}").subarray(1), ["content-encoding", "gzip"]) },
  ERR_DECODING_BUSY: {
    sent: { ...water("x", ["content-encoding", "zstd"]), path: "/readings", header: [["content-encoding", "zstd"]] },
    options: {
      rest: {
        rules: [
          {
            selector: "greenhouse.v1.GreenhouseService.RecordReadings",
            pattern: { case: "post", value: "/readings" },
            body: "*",
          },
        ],
      },
    },
    prepare: () => ({ [Symbol.dispose]: reserveWindow(256 * 1024 * 1024) }),
  },
  ERR_MESSAGE_INVALID: { sent: water("{") },
  ERR_PROTOCOL: { sent: { httpMethod: "POST", path: waterBedProcedure,
      header: [["content-type", "application/grpc+proto"]], body: Buffer.of(0, 0) } },
  ERR_TIMEOUT_INVALID: { sent: water("{}", ["connect-timeout-ms", "soon"]) },
  ERR_DEADLINE_EXCEEDED: { sent: water("{}", ["connect-timeout-ms", "0"]) },
  ERR_CLIENT_GONE: codeOfGoneClient,
  ERR_HEALTH_SERVICE: () => codeOfHealth((health) => health.check(create(HealthCheckRequestSchema,
        { service: "weather" }), healthContext)),
  ERR_HEALTH_WATCHERS: () =>
    codeOfHealth(async (health) => {
      for (let watchers = 0; watchers < 1_001; watchers += 1) await watch(health)[Symbol.asyncIterator]().next();
    }),
  ERR_SERVER_STOPPING: () =>
    codeOfHealth(async (health, readiness) => {
      readiness.startDraining();
      for await (const _ of watch(health));
    }),
  ERR_UPSTREAM_UNAVAILABLE: () => codeOfUpstream({ request: ({ socket }) => socket.destroy() }),
  ERR_UPSTREAM_BUSY: () => codeOfUpstream({},
    (baseUrl) => createUpstream({ addresses: baseUrl, connections: 1,
        limits: { callsPerConnection: 1, queueTimeoutMs: 1 } })),
  ERR_UPSTREAM_RESPONSE: () => codeOfUpstream({ request: (connection,
        id) => connection.send(...grpcResponse(id, envelope(Buffer.of(0xff)))) }),
  ERR_HANDLER_FAILED: { sent: water("{}"), implementation: { waterBed: fails } },
  ERR_REQUEST_FAILED: { sent: water("{}"), options: { admit: fails } },
  ERR_RESPONSE_FAILED: { sent: water("{}"), options: { interceptors: [noFields] } },
  ERR_CALLBACK_FAILED: { sent: water("{}"), options: { onRequest: fails } },
  ERR_CONNECTION_FAILED: codeOfBrokenConnection,
  ERR_HTTP_RULES: () => codeOfThrown(() => createTestGateway({ routes: () => {}, requestPathPrefix: "api" })),
  ERR_DESCRIPTORS: () => {
    const { file } = GreenhouseService;
    const proto: typeof file.proto = Object.setPrototypeOf({ ...file.proto }, {});
    return codeOfThrown(() =>
      requireOwnDescriptors([{ ...GreenhouseService, file: { ...file, proto } }], undefined, undefined),
    );
  },
  ERR_OPTIONS: () =>
    codeOfThrown(() => createTestGateway({ routes: () => {}, trustedProxies: { addresses: ["here"] } })),
  ERR_HEADER_FIELD: codeOfWrongField,
};

/** Makes two concurrent REST calls to an upstream, and returns the identifier from the first that fails. */
async function codeOfUpstream(script: Script, open: (baseUrl: string) => string | Upstream = String): Promise<unknown> {
  await using upstream = await startScriptedServer(script);
  const { promise, resolve } = Promise.withResolvers<unknown>();
  await using proxy = await startProxy(upstream.baseUrl, [GreenhouseService.file], {
    onError: (_, error) => resolve(errorCodeOf(error)),
    upstreamOptions: { upstream: open(upstream.baseUrl) },
  });
  const responses = [1, 2].map(() => exchangeHttp1(proxy.address, get("/sensors/a/reading")).catch(() => undefined));
  const code = await within(promise, "an error");
  await proxy.proxy.close();
  await Promise.all(responses);
  return code;
}

async function recordReadings(readings: AsyncIterable<unknown>): Promise<{ count: number }> {
  let count = 0;
  for await (const _ of readings) count += 1;
  return { count };
}

/** Options that collect the identifiers from all hooks. */
function collecting({ rest, ...others }: Partial<GatewayOptions> = {}): {
  readonly options: Partial<GatewayOptions>;
  readonly codes: ReadonlySet<unknown>;
} {
  const codes = new Set<unknown>();
  const options: Partial<GatewayOptions> = {
    ...others,
    rest: { ...rest, errorRecord: (error) => (codes.add(errorCodeOf(error)), { httpStatus: 400, body: {} }) },
    onResponse: ({ error }) => void (error && codes.add(errorCodeOf(error))),
    onFault: (_error, _what, _request, errorCode) => void codes.add(errorCode),
  };
  return { options, codes };
}

async function codesOf(row: Refused): Promise<readonly unknown[]> {
  const { options, codes } = collecting(row.options);
  const implementation = { waterBed: () => ({}), getReading: () => ({}), recordReadings, ...row.implementation };
  await using greenhouse = await startGreenhouse(implementation, options);
  using _ = row.prepare?.();
  await send(greenhouse.address, row.sent);
  return [...codes];
}

async function send(address: Address, sent: HttpRequest | string): Promise<void> {
  if (typeof sent === "string") {
    using connection = await openHttp1(address);
    connection.write(sent);
    await connection.readResponse();
  } else if (sent.path === waterBedProcedure) await exchangeHttp2(address, sent);
  else await exchangeHttp1(address, sent);
}

function codeOfThrown(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error instanceof Error && "code" in error ? error.code : error;
  }
  return undefined;
}

/** Returns the identifier when an application reads the body before it passes the request to the gateway. */
async function codeOfReadBody(): Promise<unknown> {
  const { options, codes } = collecting();
  const gateway = createTestGateway({ routes: (router) => router.service(GreenhouseService, {}), ...options });
  const server = createServer((request, response) => {
    request.resume().on("end", () => gateway.handler(request, response));
  });
  await using started = await startOnLoopback(server);
  await exchangeHttp1(started.address, water("{}"));
  return [...codes][0];
}

/** Returns the identifier when a request violates a buf.validate rule. */
async function codeOfViolation(): Promise<unknown> {
  const { options, codes } = collecting();
  await using signup = await startSignup(await openValidation(), options);
  await exchangeHttp1(signup.address, { ...water("{}"), path: "/accounts" });
  return [...codes][0];
}

type HealthCall = (health: ServiceImpl<typeof Health>, readiness: Readiness) => unknown;
const watching = { protocolName: "grpc", requestMethod: "POST", url: "http://localhost/" };
const healthContext = createHandlerContext({ service: Health, method: Health.method.watch, ...watching });
afterAll(() => healthContext.abort());

/** Calls the health handler directly, because the identifier is not sent to clients. */
async function codeOfHealth(call: HealthCall): Promise<unknown> {
  const readiness = new Readiness({});
  try {
    await call(createHealthService({ readiness, services: [] }), readiness);
  } catch (error) {
    return error instanceof ConnectError ? errorCodeOf(error) : error;
  }
  return undefined;
}

const watch = (health: ServiceImpl<typeof Health>): AsyncIterable<unknown> =>
  health.watch(create(HealthCheckRequestSchema), healthContext);

/** Returns the identifier when a client disconnects while its call runs. */
async function codeOfGoneClient(): Promise<unknown> {
  const called = Promise.withResolvers<void>();
  const waterBed = async (): Promise<never> => (called.resolve(), await new Promise(() => {}));
  await using greenhouse = await startGreenhouse({ waterBed });
  const connection = await openHttp1(greenhouse.address);
  connection.request(water("{}"));
  await within(called.promise, "the call");
  connection.socket.resetAndDestroy();
  const { error } = await greenhouse.completed(1);
  return error && errorCodeOf(error);
}

/** Returns the identifier for a gateway defect outside any call. */
async function codeOfBrokenConnection(): Promise<unknown> {
  const reported = Promise.withResolvers<unknown>();
  // oxfmt-ignore
  const server = createHttp1Server({
    limits: defaultLimits, budget: new BacklogBudget(defaultLimits.backlogBytes), serve: fails, refuse: fails,
    stopProblem: () => undefined, countError: fails, report: (_error, { errorCode }) => reported.resolve(errorCode),
  });
  const listening = createTcpServer({ allowHalfOpen: true }, (socket) => void server.take(socket));
  await using started = await startOnLoopback(listening);
  using connection = await openHttp1(started.address);
  connection.request(get("/"));
  const code = await within(reported.promise, "the report");
  server.close();
  return code;
}

/** Returns the identifier when `admit` adds a header field that HTTP does not allow. */
async function codeOfWrongField(): Promise<unknown> {
  const faults: unknown[] = [];
  await using greenhouse = await startGreenhouse(
    { waterBed: () => ({}) },
    {
      admit: (request) => request.addResponseHeader("two words", ""),
      onFault: (error) => void faults.push(codeOfThrown(throws(error))),
    },
  );
  using connection = await openHttp1(greenhouse.address);
  connection.request(water("{}"));
  await greenhouse.completed(1);
  return faults[0];
}

test.each(Object.entries(rows))("the error code %s is reported for its documented cause", async (code, row) => {
  if (typeof row === "function") expect(await row()).toBe(code);
  else expect(await codesOf(row)).toEqual([code]);
});
