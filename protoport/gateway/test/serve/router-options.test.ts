import { type ConnectRouter, type ConnectRouterOptions, ConnectError, createConnectRouter } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGateway, type GatewayOptions } from "../../src/index.ts";
import { exchangeHttp2, fieldValue } from "@protoport/testing/http";
import { getReadingProcedure, waterBedProcedure } from "../../../testing/src/gateway/greenhouse.ts";
import { envelope } from "../../../testing/src/gateway/scripted-http2-server.ts";
import { rpcRequest, wireFormats } from "../../../testing/src/gateway/wire-format.ts";

// The gateway's router accepts the same arguments as Connect's. The expected results are Connect's. A server must
// behave the same after changing its import.

type Override = Partial<ConnectRouterOptions>;
const getReading = `${getReadingProcedure}?encoding=json&message=%7B%7D`;
const implementation = { waterBed: () => ({}), getReading: () => ({}) };

/** Returns the protocols that a service serves, and "GET", or the Allow field of a refused GET. */
async function servedCalls(options: Partial<GatewayOptions>, override?: Override): Promise<readonly string[]> {
  await using stack = new AsyncDisposableStack();
  const routes = (router: ConnectRouter): unknown => router.service(GreenhouseService, implementation, override);
  const gateway = createGateway({ ...options, routes });
  stack.defer(() => gateway.close());
  const address = await gateway.listen({ host: "127.0.0.1", port: 0 });
  const found: string[] = [];
  for (const name of ["connect-json", "grpc-json", "grpc-web-json"] as const) {
    const format = wireFormats[name];
    const response = await exchangeHttp2(address, rpcRequest(format, Buffer.from("{}"), [], waterBedProcedure));
    if (response.httpStatus === 200) found.push(format.protocol);
  }
  const got = await exchangeHttp2(address, { httpMethod: "GET", path: getReading, header: [] });
  return [...found, got.httpStatus === 200 ? "GET" : (fieldValue(got.header, "allow") ?? "")];
}

describe("requireConnectProtocolHeader", () => {
  const version = ["connect-protocol-version", "1"] as const;
  const otherVersion = ["connect-protocol-version", "2"] as const;
  const watchReadings = `/${GreenhouseService.typeName}/WatchReadings`;
  const body = Buffer.from("{}");
  const ofJson = ["content-type", "application/json"] as const;
  const ofStream = ["content-type", "application/connect+json"] as const;
  test.each([
    ["a call", { httpMethod: "POST", path: waterBedProcedure, header: [ofJson], body }, { header: [ofJson, version] }],
    [
      "a stream",
      { httpMethod: "POST", path: watchReadings, header: [ofStream, otherVersion], body: envelope(body) },
      { header: [ofStream, version] },
    ],
    ["a GET", { httpMethod: "GET", path: getReading, header: [] }, { path: `${getReading}&connect=v1` }],
  ])("refuses %s without the version", async (_by, without, named) => {
    await using stack = new AsyncDisposableStack();
    const gateway = createGateway({
      requireConnectProtocolHeader: true,
      routes: (router) => router.service(GreenhouseService, { ...implementation, async *watchReadings() {} }),
    });
    stack.defer(() => gateway.close());
    const address = await gateway.listen({ host: "127.0.0.1", port: 0 });
    expect(String((await exchangeHttp2(address, without)).body)).toContain("invalid_argument");
    expect(String((await exchangeHttp2(address, { ...without, ...named })).body)).not.toContain("code");
  });
});

describe("router options", () => {
  // oxfmt-ignore
  const rows: readonly { title: string; of?: Partial<GatewayOptions>; own?: Override; want: readonly string[] }[] = [
    { title: "serve all protocols by default", want: ["connect", "grpc", "grpc-web", "GET"] },
    { title: "omit gRPC when grpc is false", of: { grpc: false }, want: ["connect", "grpc-web", "GET"] },
    { title: "omit gRPC-Web when grpcWeb is false", of: { grpcWeb: false }, want: ["connect", "grpc", "GET"] },
    { title: "omit Connect and its GET when connect is false", of: { connect: false },
      want: ["grpc", "grpc-web", "POST"] },
    { title: "of a service omit gRPC when grpc is false", own: { grpc: false }, want: ["connect", "grpc-web", "GET"] },
    { title: "of a service override the router's", of: { grpc: false }, own: { grpc: true, connect: false },
      want: ["grpc", "grpc-web", "POST"] },
    { title: "of a service merge with the router's", of: { grpcWeb: false }, own: { connect: false },
      want: ["grpc", "POST"] },
  ];
  test.for(rows)("$title", async ({ of = {}, own, want }) => expect(await servedCalls(of, own)).toEqual(want));
  const none: Override = { grpc: false, grpcWeb: false, connect: false };
  const refused: readonly { title: string; of?: Partial<GatewayOptions>; own?: Override; error: RegExp }[] = [
    { title: "a gateway without a protocol", of: none, error: /all protocols are disabled/ },
    { title: "a service without a protocol", own: none, error: /all protocols are disabled/ },
  ];
  test.for(refused)("reject $title like Connect's router", ({ of = {}, own, error }) => {
    const start = (): unknown =>
      createGateway({ ...of, routes: (router) => router.service(GreenhouseService, implementation, own) });
    expect(start).toThrow(ConnectError);
    expect(start).toThrow(error);
    expect(() => createConnectRouter(of).service(GreenhouseService, implementation, own)).toThrow(error);
  });
  // Connect's router accepts NaN, with which no message exceeds a limit.
  const limits = ["readMaxBytes", "writeMaxBytes", "compressMinBytes", "maxTimeoutMs"] as const;
  test.for(limits.flatMap((name) => [Number.NaN, -1].map((value) => ({ name, value }))))(
    "reject $name $value",
    ({ name, value }) => {
      const error = new RegExp(`option "${name}" of .* must be an integer between .*, got ${value}$`);
      const limit = { [name]: value };
      const start = (own?: Override): unknown =>
        createGateway({
          routes: (router) => router.service(GreenhouseService, implementation, own),
          ...(!own && limit),
        });
      expect(() => start()).toThrow(error);
      expect(() => start(limit)).toThrow(error);
    },
  );
});

test("router.handlers returns the same handlers as Connect's router", () => {
  const handlers: string[][] = [];
  const register = (router: ConnectRouter): void => {
    const own: Override = { grpcWeb: false };
    router.service(GreenhouseService, implementation, own);
    handlers.push(router.handlers.map(({ requestPath, protocolNames }) => `${requestPath} ${protocolNames.join(" ")}`));
  };
  register(createConnectRouter());
  createGateway({ routes: register });
  expect(handlers[0]).toHaveLength(GreenhouseService.methods.length);
  expect(handlers[1]).toEqual(handlers[0]);
});
