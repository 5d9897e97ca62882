import { once } from "node:events";
import { createServer as createHttpServer, type Server } from "node:http";
import { createServer } from "node:net";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { status } from "@grpc/grpc-js";
import type { ServerDuplexStream, ServiceDefinition, UntypedServiceImplementation } from "@grpc/grpc-js";
import { expect, onTestFinished, test } from "vitest";
import { GreenhouseService } from "../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { freePort, startOnLoopback, within } from "@protoport/testing";
import { createGatewayStrategy, type GatewayStrategyOptions, type MountableApplication } from "../src/nestjs.ts";
import { loadGarden } from "./garden.ts";
import { callGarden, type Message } from "./grpc-js-client.ts";

// The strategy of a class with the interface of Nest's ServerGrpc. The suite frameworks tests the strategy in Nest.

type GrpcServerOptions = { readonly handlers: UntypedServiceImplementation };
type GrpcClient = { addService(definition: ServiceDefinition, handlers: UntypedServiceImplementation): void };

/** A server with a garden. The strategy replaces all methods except `bindEvents`. */
class ServerGrpc {
  readonly options: GrpcServerOptions;
  constructor(options: GrpcServerOptions) {
    this.options = options;
  }
  async bindEvents(): Promise<void> {
    (await this.createClient()).addService(loadGarden(), this.options.handlers);
  }
  async createClient(): Promise<GrpcClient> {
    return { addService: () => undefined };
  }
  addHandler(): void {}
  getMessageHandler(): undefined {
    return undefined;
  }
  async start(): Promise<void> {}
  async close(): Promise<void> {}
}

test("start rejects and opens no port when close is called meanwhile", async () => {
  const port = await freePort();
  const strategy = createGatewayStrategy(ServerGrpc, { handlers: {} }, { listen: { host: "127.0.0.1", port } });
  const started = strategy.start();
  await strategy.close();
  await expect(started).rejects.toThrow("the strategy was closed before it had started");
  const server = createServer().listen({ host: "127.0.0.1", port });
  await once(server, "listening");
  server.close();
});

test("start rejects if messages writes other bytes than the definition", async () => {
  const messages = { Tree: { encode: (_: Message, writer: unknown) => writer } };
  const strategy = createGatewayStrategy(ServerGrpc, { handlers: {} }, { listen: { port: 0 }, messages });
  await expect(strategy.start()).rejects.toThrow("messages.Tree writes other bytes than the definition");
});

test("close aborts calls on a separate port after closeTimeoutMs", async () => {
  const port = await freePort();
  const closed = Promise.withResolvers<void>();
  const handlers = { listTrees: () => closed.resolve(strategy.close()) };
  const listen = { host: "127.0.0.1", port };
  const strategy = createGatewayStrategy(ServerGrpc, { handlers }, { listen, closeTimeoutMs: 1 });
  await strategy.start();
  onTestFinished(() => strategy.close());
  const options = { deadline: Date.now() + 5000 };
  const { code } = await callGarden(port, { method: "ListTrees", options });
  // The connection closes with the call. The client's code depends on which of the two events grpc-js handles first.
  expect([status.UNAVAILABLE, status.INTERNAL]).toContain(code);
  await within(closed.promise, "the end of close");
});

function createApplication(server: Server): MountableApplication {
  const application = {
    config: { getGlobalGuards: () => [], getGlobalRequestGuards: () => [], getGlobalPrefix: () => "" },
    container: { getModules: () => new Map([["app", { addProvider: () => undefined, middlewares: new Map() }]]) },
    getMicroservices: () => [],
    getHttpAdapter: () => ({ getHttpServer: () => server, createMiddlewareFactory() {}, listen() {} }),
    use: (middleware: Parameters<MountableApplication["use"]>[0]) =>
      server.on("request", (request, response) => middleware(request, response, () => undefined)),
  };
  return application;
}

/** Returns the status of a mounted GetTree call whose handler is `getTree`. The call ends before the default timeout. */
async function callMounted(options: GatewayStrategyOptions, getTree: (close: () => void) => void): Promise<number> {
  const handlers = { getTree: () => getTree(() => void strategy.close()) };
  const strategy = createGatewayStrategy(ServerGrpc, { handlers }, options);
  const server = createHttpServer();
  strategy.mount(createApplication(server));
  await strategy.start();
  await using loopback = await startOnLoopback(server);
  const signal = AbortSignal.timeout(5000);
  return (await fetch(`${loopback.baseUrl}/v1/beds/1/trees/7`, { signal })).status;
}

test("close aborts mounted calls after closeTimeoutMs, even with gateway.shutdownSignal", async () => {
  const gateway = { shutdownSignal: new AbortController().signal };
  expect(await callMounted({ gateway, closeTimeoutMs: 1 }, (close) => close())).toBe(503);
});

test("gateway.shutdownSignal aborts mounted calls before the strategy closes", async () => {
  const shutdown = new AbortController();
  const reason = new ConnectError("the server restarts", Code.Unavailable);
  expect(await callMounted({ gateway: { shutdownSignal: shutdown.signal } }, () => shutdown.abort(reason))).toBe(503);
});

test("the gateway has the routes of gateway.routes next to the controllers", async () => {
  const gateway = { routes: (router: ConnectRouter): void => void router.service(GreenhouseService, {}) };
  const listen = { host: "127.0.0.1", port: await freePort() };
  const strategy = createGatewayStrategy(ServerGrpc, { handlers: {} }, { listen, gateway });
  await strategy.start();
  onTestFinished(() => strategy.close());
  expect(strategy.unwrap().routes.map(({ path }) => path)).toEqual(
    expect.arrayContaining(["/garden.v1.Garden/GetTree", `/${GreenhouseService.typeName}/GetReading`]),
  );
});

test("start rejects after mount has refused an initialized application", async () => {
  const strategy = createGatewayStrategy(ServerGrpc, { handlers: {} });
  const app = { isInitialized: true, use: (): void => undefined };
  expect(() => strategy.mount(app)).toThrow("call strategy.mount(app) before app.startAllMicroservices(), app.init()");
  const problem =
    "no client can reach the RPCs: set the option listen, or call strategy.mount(app) before app.startAllMicroservices()";
  await expect(strategy.start()).rejects.toThrow(problem);
});

test.each<[name: string, ofNest: object, options: object, problem: string]>([
  ["url", { url: "127.0.0.1:5000" }, {}, "set listen of the third argument"],
  ["credentials", { credentials: {} }, {}, "set tls of the option listen"],
  ["channelOptions", { channelOptions: {} }, {}, "they are options of a server of grpc-js"],
  ["listens", {}, { listens: {} }, 'unknown option "listens"'],
])("the option %s is refused", (_name, ofNest, options, problem) => {
  expect(() => createGatewayStrategy(ServerGrpc, { handlers: {}, ...ofNest }, options)).toThrow(problem);
});

test("start rejects when the port is in use", async () => {
  await using other = await startOnLoopback(createServer());
  const listen = { host: "127.0.0.1", port: other.address.port };
  const strategy = createGatewayStrategy(ServerGrpc, { handlers: {} }, { listen });
  await expect(strategy.start()).rejects.toMatchObject({ code: "EADDRINUSE" });
});

test.each([
  ["a guard's refusal ends a stream with PERMISSION_DENIED", "Forbidden resource", status.PERMISSION_DENIED],
  ["an RpcException ends a stream with UNKNOWN and its message", "not a tree", status.UNKNOWN],
])("%s", async (_name, message, code) => {
  const port = await freePort();
  // Nest's filter emits this object for both.
  const fail = (call: ServerDuplexStream<Message, Message>) => call.emit("error", { status: "error", message });
  const listen = { host: "127.0.0.1", port };
  const strategy = createGatewayStrategy(ServerGrpc, { handlers: { listTrees: fail, tradeTrees: fail } }, { listen });
  await strategy.start();
  onTestFinished(() => strategy.close());
  for (const method of ["ListTrees", "TradeTrees"] as const)
    expect(await callGarden(port, { method })).toMatchObject({ code, details: message });
});
