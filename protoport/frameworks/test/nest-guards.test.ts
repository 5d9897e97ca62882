import { EventEmitter } from "node:events";
import { createServer, type Server } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { GreenhouseService } from "../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createMcp } from "../../gateway/src/mcp/index.ts";
import { exchangeHttp1, startOnLoopback, statelessRequest, toolNameOf } from "@protoport/testing";
import { enhancersOf, type NestApplication } from "../src/nest-enhancers.ts";
import { createGuardChecks } from "../src/nest-guards.ts";
import { ConnectGateway, ConnectModule, type ConnectModuleOptions } from "../src/nestjs.ts";

// Guards in objects with Nest's interfaces. The suite frameworks tests guards in Nest.

type NestModule = ReturnType<NestApplication["container"]["getInternalCoreModuleRef"]>;
type Wrapper = NonNullable<ReturnType<NestModule["injectables"]["get"]>>;
type RpcHandler = (request: object, context: HandlerContext) => object;
type Middleware = Parameters<Parameters<ConnectGateway["mount"]>[0]["use"]>[0];
const metadata = new Map<unknown, ReadonlyMap<unknown, unknown>>();

/** Returns the metadata of a class, or of a base class, as reflect-metadata does. */
function getMetadata(key: unknown, target: unknown): unknown {
  const own = metadata.get(target)?.get(key);
  return own ?? (typeof target === "function" ? getMetadata(key, Object.getPrototypeOf(target)) : undefined);
}

const functions = { getMetadata, getMetadataKeys: (): unknown[] => [], defineMetadata: (): void => undefined };
beforeAll(() => void Object.assign(Reflect, functions));
afterAll(() => {
  for (const name of Object.keys(functions)) Reflect.deleteProperty(Reflect, name);
});

class RoleGuard {
  canActivate(): boolean {
    return true;
  }
}

class Greenhouse {
  readonly sensors = 1;
}

/** A class with the name of Nest's, whose instance runs one guard for all RPCs. */
class ExternalContextCreator {
  readonly #canActivate: () => boolean;
  constructor(canActivate: () => boolean) {
    this.#canActivate = canActivate;
  }
  create(): () => Promise<boolean> {
    return async () => this.#canActivate();
  }
}

const singleton: Wrapper = {
  instance: undefined,
  name: "RoleGuard",
  isTransient: false,
  isDependencyTreeStatic: () => true,
  getCtorMetadata: () => undefined,
  getPropertiesMetadata: () => undefined,
  getEnhancersMetadata: () => undefined,
};
const transient: Wrapper = { ...singleton, isTransient: true };
const requestScoped: Wrapper = { ...singleton, isDependencyTreeStatic: () => false };

/** Returns an application with a global guard, which has one of these wrappers in each module. */
function createApplication(guard: unknown, wrappers: readonly Wrapper[], canActivate = () => true): NestApplication {
  const declared = { Guards: [guard], Filters: [], Interceptors: [], Pipes: [] };
  const getters = Object.entries(declared).flatMap(([kind, enhancers]) => [
    [`getGlobal${kind}`, () => enhancers],
    [`getGlobalRequest${kind}`, () => []],
  ]);
  const creator = { ...singleton, instance: new ExternalContextCreator(canActivate) };
  const parts = { providers: new Map(), middlewares: new Map() };
  const modules = wrappers.map((wrapper): NestModule => ({ ...parts, injectables: new Map([[guard, wrapper]]) }));
  return {
    configuration: { config: { ...Object.fromEntries(getters), getGlobalPrefix: () => "" } },
    container: {
      getInternalCoreModuleRef: () => ({
        providers: new Map([[ExternalContextCreator, creator]]),
        injectables: new Map(),
        middlewares: new Map(),
      }),
      getModules: () => new Map(modules.map((module, at) => [String(at), module])),
    },
  };
}

test.each([
  { name: "that no module provides", wrappers: [] },
  { name: "with the scope TRANSIENT", wrappers: [transient] },
  { name: "with the scope REQUEST", wrappers: [requestScoped] },
  { name: "that is request-scoped in one of two modules", wrappers: [singleton, requestScoped] },
])("a guard $name is refused", ({ wrappers }) => {
  const { configuration, container } = createApplication(RoleGuard, wrappers);
  expect(() => createGuardChecks(configuration, container, [])).toThrow(
    "Nest runs only guards that are singletons for RPCs: RoleGuard (global). Remove their scope",
  );
});

test("a global guard that Nest creates for each request is refused", () => {
  const { configuration, container } = createApplication(new RoleGuard(), []);
  const getGlobalRequestGuards = (): object[] => [{ metatype: RoleGuard }];
  const config = { ...configuration.config, getGlobalRequestGuards };
  expect(() => createGuardChecks({ config }, container, [])).toThrow(
    "Nest runs only guards that are singletons for RPCs: RoleGuard (global). Remove their scope",
  );
});

test("a guard that is a singleton in two modules is accepted", () => {
  const { configuration, container } = createApplication(RoleGuard, [singleton, singleton]);
  expect(createGuardChecks(configuration, container, []).size).toBe(0);
});

test("the guards of a provider's base class apply to its RPCs", () => {
  class Glasshouse extends Greenhouse {}
  class Palmhouse extends Glasshouse {}
  metadata.set(Glasshouse, new Map([["__guards__", [RoleGuard]]]));
  const { configuration } = createApplication(new RoleGuard(), []);
  const provider = { type: Palmhouse, service: GreenhouseService, instance: new Palmhouse(), methods: [] };
  const guards = enhancersOf("Guards", configuration, [provider]);
  expect(guards.map(({ label }) => label)).toEqual(["RoleGuard of Palmhouse", "RoleGuard (global)"]);
});

test("a method's guard applies even if an earlier method has none", () => {
  const instance = Object.assign(new Greenhouse(), { recordReadings: () => ({}), pruneWithoutRpc: () => ({}) });
  for (const method of [instance.recordReadings, instance.pruneWithoutRpc])
    metadata.set(method, new Map([["__guards__", [new RoleGuard()]]]));
  const { configuration, container } = createApplication(new RoleGuard(), []);
  const config = { ...configuration.config, getGlobalGuards: () => [] };
  const provider = { type: Greenhouse, service: GreenhouseService, instance, methods: ["recordReadings"] };
  const checks = createGuardChecks({ config }, container, [provider]);
  expect([...checks.keys()]).toEqual([`/${GreenhouseService.typeName}/RecordReadings`]);
});

function createGateway({ providers }: ReturnType<typeof ConnectModule.forRoot>, provider: object): ConnectGateway {
  const created = new Map<unknown, object>([[Greenhouse, provider]]);
  for (const each of providers) {
    if (!("useFactory" in each)) continue;
    const dependencies = each.inject.map((token) => created.get(token));
    created.set(each.provide, Reflect.apply(each.useFactory, undefined, dependencies));
  }
  const gateway = created.get(ConnectGateway);
  if (!(gateway instanceof ConnectGateway)) throw new TypeError("the module has no gateway");
  return gateway;
}

type Mounted = { readonly gateway: ConnectGateway; readonly server: Server };
/** What the application has in addition to a gateway. */
type ApplicationParts = { canActivate?: () => boolean; handler?: RpcHandler; pipes?: readonly object[] };

/** Mounts a gateway with a guard. All its RPCs run a handler. */
function mountGateway(
  options: Partial<ConnectModuleOptions>,
  { canActivate = () => true, handler = () => ({}), pipes = [] }: ApplicationParts,
): Mounted {
  const rpcs = Object.fromEntries(GreenhouseService.methods.map(({ localName }) => [localName, handler]));
  const services = [{ service: GreenhouseService, provider: Greenhouse }];
  const gateway = createGateway(ConnectModule.forRoot({ ...options, services }), Object.assign(new Greenhouse(), rpcs));
  const { configuration, container } = createApplication(new RoleGuard(), [], canActivate);
  const middlewares: Middleware[] = [];
  const use = (each: Middleware): void => void middlewares.push(each);
  const config = { ...configuration.config, getGlobalPipes: () => pipes };
  const httpServer = new EventEmitter();
  const adapter = { getHttpServer: () => httpServer, createMiddlewareFactory: () => undefined };
  const getHttpAdapter = (): object => adapter;
  gateway.mount(Object.assign({ use }, { container, config, getHttpAdapter }));
  gateway.onApplicationBootstrap();
  const server = createServer((request, response) => middlewares[0]?.(request, response, () => response.end()));
  return { gateway, server };
}

test.each([
  { name: "runs after the function from admit", refusal: undefined, httpStatus: 200, want: ["admit", "guard"] },
  {
    name: "is skipped if the function from admit refuses the call",
    refusal: new ConnectError("not the owner", Code.PermissionDenied),
    httpStatus: 403,
    want: ["admit"],
  },
])("a guard $name", async ({ refusal, httpStatus, want }) => {
  const order: string[] = [];
  const admit = () => async (): Promise<void> => {
    order.push("admit");
    if (refusal !== undefined) throw refusal;
  };
  const { server } = mountGateway({ admit }, { canActivate: () => order.push("guard") > 0 });
  await using started = await startOnLoopback(server);
  expect(await fetch(`${started.baseUrl}/sensors/7/reading`)).toMatchObject({ status: httpStatus });
  expect(order).toEqual(want);
});

test("the gateway of a Nest module keeps admit's check of RPCs", () => {
  const checked = new Set<string>();
  const requireChecked = ({ name }: DescMethod): void => void checked.add(name);
  mountGateway({ admit: Object.assign(() => undefined, { requireChecked }) }, {});
  expect(checked.size).toBe(GreenhouseService.methods.length);
});

test("a guard runs for an MCP tool call", async () => {
  const procedure = `/${GreenhouseService.typeName}/GetReading`;
  const checked: string[] = [];
  const mcp = createMcp({ tools: [`${GreenhouseService.typeName}.GetReading`] });
  const { server } = mountGateway({ mcp }, { canActivate: () => checked.push("guard") > 0 });
  await using started = await startOnLoopback(server);
  const request = statelessRequest("tools/call", { name: toolNameOf(procedure), arguments: {} });
  expect(await exchangeHttp1(started.address, request)).toMatchObject({ httpStatus: 200 });
  expect(checked).toEqual(["guard"]);
});

class TrimPipe {
  transform(value: unknown): unknown {
    return value;
  }
}

test.each([
  { name: "no warning without pipes", pipes: [], warnings: [] },
  {
    name: "a warning that lists a global pipe",
    pipes: [new TrimPipe()],
    warnings: ["Nest runs no pipes, interceptors or exception filters for RPCs: TrimPipe (global)"],
  },
])("onApplicationBootstrap emits $name", async ({ pipes, warnings }) => {
  const emitted: string[] = [];
  const onWarning = ({ message }: Error): void => void emitted.push(message);
  process.on("warning", onWarning);
  onTestFinished(() => void process.off("warning", onWarning));
  mountGateway({}, { pipes });
  await nextTurn();
  expect(emitted).toEqual(warnings);
});

/** An exception with the members of Nest's `HttpException`. */
class HttpException extends Error {
  readonly #status: number;
  constructor(message: string, httpStatus: number) {
    super(message);
    this.#status = httpStatus;
  }
  getStatus(): number {
    return this.#status;
  }
}

test.each([
  { httpStatus: 403, message: "no role", faults: [] },
  { httpStatus: 422, want: 400, message: "no role", faults: [] },
  { httpStatus: 500, message: "internal error", faults: ["no role"] },
])(
  'a guard\'s HttpException with status $httpStatus sends "$message" to the client',
  async ({ httpStatus, want = httpStatus, message, faults }) => {
    const reported: unknown[] = [];
    const onFault = (error: unknown): void => void reported.push(Object(error).message);
    const canActivate = (): never => {
      throw new HttpException("no role", httpStatus);
    };
    const { server } = mountGateway({ onFault }, { canActivate });
    await using started = await startOnLoopback(server);
    const response = await fetch(`${started.baseUrl}/sensors/7/reading`);
    expect([response.status, await response.json()]).toEqual([want, expect.objectContaining({ message })]);
    expect(reported).toEqual(faults);
  },
);

test("Nest's hook beforeApplicationShutdown aborts calls after closeTimeoutMs", async () => {
  const handler: RpcHandler = async (_request, { signal }) => {
    gateway.beforeApplicationShutdown();
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    throw signal.reason;
  };
  const { gateway, server } = mountGateway({ closeTimeoutMs: 1 }, { handler });
  await using started = await startOnLoopback(server);
  const response = await fetch(`${started.baseUrl}/sensors/7/reading`);
  expect(await response.json()).toMatchObject({ message: "the server is shutting down" });
});
