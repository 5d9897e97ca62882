import { createServer } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { startOnLoopback } from "../../testing/src/http/listen-on-loopback.ts";
import { enhancersOf, type NestApplication } from "../src/nest-enhancers.ts";
import { createGuardChecks } from "../src/nest-guards.ts";
import { ConnectGateway, ConnectModule } from "../src/nestjs.ts";

// Guards in objects with Nest's interfaces. The suite frameworks tests guards in Nest.

type NestModule = ReturnType<NestApplication["container"]["getInternalCoreModuleRef"]>;
type Wrapper = NonNullable<ReturnType<NestModule["injectables"]["get"]>>;
type Middleware = Parameters<Parameters<ConnectGateway["mount"]>[0]["use"]>[0];

const metadata = new Map<unknown, ReadonlyMap<unknown, unknown>>();

/** Returns the metadata of a class, or of a base class, as reflect-metadata does. */
function getMetadata(key: unknown, target: unknown): unknown {
  const own = metadata.get(target)?.get(key);
  return own ?? (typeof target === "function" ? getMetadata(key, Object.getPrototypeOf(target)) : undefined);
}

/** The functions of reflect-metadata that the package uses. */
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

/** A provider, without its RPCs. */
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

const singleton: Wrapper = { instance: undefined, isTransient: false, isDependencyTreeStatic: () => true };
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
  const modules = wrappers.map((wrapper): NestModule => ({
    providers: new Map(),
    injectables: new Map([[guard, wrapper]]),
  }));
  return {
    configuration: { config: Object.fromEntries(getters) },
    container: {
      getInternalCoreModuleRef: () => ({
        providers: new Map([[ExternalContextCreator, creator]]),
        injectables: new Map(),
      }),
      getModules: () => new Map(modules.map((module, at) => [String(at), module])),
    },
  };
}

test.each([
  { name: "that no module has", wrappers: [] },
  { name: "with the scope TRANSIENT", wrappers: [transient] },
  { name: "with the scope REQUEST", wrappers: [requestScoped] },
  { name: "that is request-scoped in one of two modules", wrappers: [singleton, requestScoped] },
])("a guard $name is refused", ({ wrappers }) => {
  const { configuration, container } = createApplication(RoleGuard, wrappers);
  expect(() => createGuardChecks(configuration, container, [])).toThrow(
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

/** Returns the gateway in a module, as Nest creates it with a provider. */
function createGateway({ providers }: ReturnType<typeof ConnectModule.forRoot>, provider: object): ConnectGateway {
  const [gateway] = providers.flatMap((each) => ("useFactory" in each ? each.useFactory(provider) : []));
  if (gateway === undefined) throw new TypeError("the module has no gateway");
  return gateway;
}

test("a guard runs after the function that the option admit returns", async () => {
  const order: string[] = [];
  const rpcs = Object.fromEntries(GreenhouseService.methods.map(({ localName }) => [localName, () => ({})]));
  const services = [{ service: GreenhouseService, provider: Greenhouse }];
  const module = ConnectModule.forRoot({ services, admit: () => () => void order.push("admit") });
  const gateway = createGateway(module, Object.assign(new Greenhouse(), rpcs));
  const canActivate = (): boolean => order.push("guard") > 0;
  const { configuration, container } = createApplication(new RoleGuard(), [], canActivate);
  const middlewares: Middleware[] = [];
  const use = (each: Middleware): void => void middlewares.push(each);
  gateway.mount(Object.assign({ use, container }, configuration));
  gateway.onApplicationBootstrap();
  const server = createServer((request, response) => middlewares[0]?.(request, response, () => response.end()));
  await using started = await startOnLoopback(server);
  expect(await fetch(`${started.baseUrl}/sensors/7/reading`)).toMatchObject({ status: 200 });
  expect(order).toEqual(["admit", "guard"]);
});
