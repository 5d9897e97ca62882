import { createServer } from "node:http2";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import type { Client, ConnectRouter, Interceptor } from "@connectrpc/connect";
import { connectNodeAdapter, createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createGateway } from "@protoport/gateway";
import { Health } from "@protoport/gateway/health";
import { createSafeErrors } from "@protoport/telemetry/logs";
import { createErrorInterceptor } from "../../src/service/error-interceptor.ts";
import { listenOnLoopback } from "@protoport/testing/http";
import { openLogLines } from "@protoport/testing/process";

const secret = "SQLITE_CORRUPT at /var/lib/plants.db";

/** The errors to throw, by the service name in the health check. */
const failures: Readonly<Record<string, () => unknown>> = {
  "an Error": () => new Error(secret),
  "a string": () => secret,
  "a ConnectError with the code Internal": () => new ConnectError(secret, Code.Internal),
  "a ConnectError for callers": () => new ConnectError("no such service", Code.NotFound),
};

function failAs(name: string): never {
  throw failures[name]?.();
}

function routes(router: ConnectRouter): void {
  router.service(Health, {
    check: ({ service }) => failAs(service),
    // The stream fails before or after its first message.
    async *watch({ service }, { requestHeader }) {
      if (requestHeader.has("yield-first")) yield {};
      failAs(service);
    },
  });
}

/** Throws before the handler is called, inside the error interceptor. */
const failing: Interceptor = (next) => (request) =>
  request.header.has("fail-early") && !request.stream && "service" in request.message
    ? failAs(String(request.message.service))
    : next(request);

const { log, lines } = openLogLines("info");
const toError = createSafeErrors({ log });
const interceptors = [createErrorInterceptor(toError), failing];
type Server = { readonly baseUrl: string; close(): Promise<unknown> };

// oxfmt-ignore
const servers: readonly { readonly name: string; readonly start: () => Promise<Server> }[] = [
  {
    name: "the gateway",
    start: async () => {
      // The plant store passes the same function as `toError`, which must not log the error again.
      const gateway = createGateway({ routes, interceptors, toError });
      const { address, port } = await gateway.listen();
      return { baseUrl: `http://${address}:${String(port)}`, close: () => gateway.close() };
    },
  },
  { name: "connect-node", start: async () => {
      const server = createServer(connectNodeAdapter({ routes, interceptors }));
      return { baseUrl: await listenOnLoopback(server), close: async () => server.close() };
    } },
];

const calls = [
  { name: "a unary handler", stream: false, headers: {} },
  { name: "an interceptor", stream: false, headers: { "fail-early": "1" } },
  { name: "a stream handler before its first message", stream: true, headers: {} },
  { name: "a stream handler after its first message", stream: true, headers: { "yield-first": "1" } },
];

describe.each(servers)("the error interceptor in $name", ({ start }) => {
  let server: Server;
  let client: Client<typeof Health>;
  beforeAll(async () => {
    server = await start();
    client = createClient(Health, createGrpcTransport({ baseUrl: server.baseUrl }));
  });
  afterAll(() => server.close());

  async function errorOf(service: string, { stream, headers }: (typeof calls)[number]): Promise<ConnectError> {
    try {
      if (!stream) await client.check({ service }, { headers });
      else for await (const { status } of client.watch({ service }, { headers })) expect(status).toBe(0);
    } catch (error) {
      return ConnectError.from(error);
    }
    throw new Error("expected the call to fail");
  }

  test.each(
    ["an Error", "a string", "a ConnectError with the code Internal"].flatMap((failure) =>
      calls.map((call) => ({ failure, call, thrower: call.name })),
    ),
  )("hides $failure from $thrower, and logs it once", async ({ failure, call }) => {
    const before = lines().length;
    const { code, rawMessage } = await errorOf(failure, call);
    expect({ code, rawMessage }).toEqual({ code: Code.Internal, rawMessage: "internal error" });
    const procedure = `/grpc.health.v1.Health/${call.stream ? "Watch" : "Check"}`;
    expect(lines().slice(before)).toMatchObject([{ level: "error", errorCode: "ERR_HANDLER_FAILED", procedure }]);
  });

  test.each(calls)("passes on a ConnectError from $name, and logs nothing", async (call) => {
    const before = lines().length;
    const { code, rawMessage } = await errorOf("a ConnectError for callers", call);
    expect({ code, rawMessage }).toEqual({ code: Code.NotFound, rawMessage: "no such service" });
    expect(lines().slice(before)).toEqual([]);
  });
});
