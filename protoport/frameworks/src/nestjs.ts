import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter, ServiceImpl } from "@connectrpc/connect";
import type { Admit, AdmitProcedure, NodeHandler } from "@protoport/gateway";
import { toErrorDefault } from "@protoport/gateway/forward";
import { arrayOf, refuseIgnoredOptions, refuseUnknownOptions, required } from "@protoport/gateway/options";
import type { ExpressConnectOptions } from "./express.ts";
import {
  applicationOf,
  type Enhancer,
  enhancersOf,
  fromHttpException,
  type InstanceWrapper,
  type NestApplication,
  type NestContainer,
  type RpcProvider,
} from "./nest-enhancers.ts";
import { createMount } from "./mount.ts";
import { createGuardChecks, type GuardCheck } from "./nest-guards.ts";
import { type MiddlewareClass, type MountableApplication, type MountedGateway, mountInNest } from "./nest-mount.ts";

// oxlint-disable-next-line typescript/no-explicit-any -- Nest's type for classes
type Class<Instance extends object> = new (...dependencies: any[]) => Instance;

/** A Connect service and the provider class that implements it. */
export interface ConnectProvider {
  readonly service: DescService;
  readonly provider: Class<object>;
}

/** Declares that a provider implements all RPCs in a Connect service. */
export function implementedBy<Service extends DescService>(
  service: Service,
  provider: Class<ServiceImpl<Service>>,
): ConnectProvider {
  return { service, provider };
}

/**
 * Options for {@link ConnectModule.forRoot}. The Express middleware's options apply, with `services` instead of
 * `routes`.
 */
export interface ConnectModuleOptions extends Omit<ExpressConnectOptions, "routes"> {
  readonly services: readonly ConnectProvider[];
  /** The modules that export the providers' dependencies. */
  readonly imports?: readonly ImportedModule[];
  /** The middleware classes that RPCs may skip where a global prefix keeps the middleware from their paths. */
  readonly ignoredMiddleware?: readonly MiddlewareClass[];
}

/** A module class, or a dynamic module such as the `ConfigModule.forRoot` result, which may be a promise. */
export type ImportedModule = Class<object> | NestDynamicModule | Promise<NestDynamicModule>;

interface NestDynamicModule {
  readonly module: Class<object>;
}

/** A dynamic Nest module. The arrays are mutable, because Nest's types require it. */
export interface ConnectDynamicModule {
  module: Class<object>;
  imports: ImportedModule[];
  providers: (Class<object> | FactoryProvider)[];
  exports: Class<object>[];
}

/** A provider that Nest creates with a function. The arguments are the providers in `inject`. */
interface FactoryProvider {
  provide: Class<object> | symbol;
  inject: (Class<object> | symbol)[];
  useFactory: (...dependencies: never[]) => object;
}

interface ClosableMount extends MountedGateway {
  close(): void;
}

/** The objects that Nest has created for a gateway. */
interface ConnectGatewayParts {
  readonly mount: ClosableMount;
  readonly providers: readonly RpcProvider[];
  readonly ignoredMiddleware: readonly MiddlewareClass[] | undefined;
  /** The RPCs' guard checks by procedure. The map is filled when the application starts. */
  readonly checks: Map<string, GuardCheck>;
}

/** The parts of one application's gateway. `undefined` until Nest has created the providers, which must be singletons. */
interface CreatedParts {
  parts: ConnectGatewayParts | undefined;
}

/** The gateway in a Nest application on Express or Fastify. `app.get(ConnectGateway)` returns it. */
export class ConnectGateway {
  readonly #created: CreatedParts;
  readonly #types: readonly Class<object>[];
  #application: NestApplication | undefined;
  #refuseSkippedMiddleware: (() => void) | undefined;

  /** Called by {@link ConnectModule.forRoot}. */
  constructor(created: CreatedParts, types: readonly Class<object>[]) {
    this.#created = created;
    this.#types = types;
  }

  /**
   * Adds the gateway's middleware. Call `mount` before `app.init` and `app.listen`, which add Nest's body parsers. For
   * calls, middleware that modules configure for their paths runs first.
   *
   * @throws TypeError if `app` is not the application that `NestFactory.create` returns
   * @throws Error if Nest creates a provider for each request
   */
  mount(app: MountableApplication): void {
    const application = applicationOf(app);
    const { parts } = this.#created;
    if (parts === undefined) throw new Error(describeScoped(this.#types, application.container));
    this.#application = application;
    this.#refuseSkippedMiddleware = mountInNest(app, parts.mount, parts.ignoredMiddleware);
  }

  /**
   * Called by Nest at the start. Throws if the gateway is not mounted, because no RPC would be served. Throws for
   * guards that Nest creates for each request, and for middleware of modules that RPCs would skip because of a global
   * prefix. Warns of pipes, interceptors and exception filters, which do not run for RPCs.
   */
  onApplicationBootstrap(): void {
    const application = this.#application;
    const { parts } = this.#created;
    if (!application || !parts)
      throw new Error("call app.get(ConnectGateway).mount(app) before app.init or app.listen");
    this.#refuseSkippedMiddleware?.();
    const { configuration, container } = application;
    const { providers, checks } = parts;
    for (const [procedure, check] of createGuardChecks(configuration, container, providers)) {
      checks.set(procedure, check);
    }
    const kinds = ["Pipes", "Interceptors", "Filters"] as const;
    const others = kinds.flatMap((kind) => enhancersOf(kind, configuration, providers));
    if (others.length === 0) return;
    process.emitWarning(`Nest runs no pipes, interceptors or exception filters for RPCs: ${enhancerLabelsOf(others)}`);
  }

  /** Called by Nest before it closes the server. */
  beforeApplicationShutdown(): void {
    this.#created.parts?.mount.close();
  }
}

function enhancerLabelsOf(enhancers: readonly Enhancer[]): string {
  return enhancers.map(({ label }) => label).join(", ");
}

/** The Nest module whose providers implement Connect services. */
// oxlint-disable-next-line typescript/no-extraneous-class -- Nest's form for a configurable module
export class ConnectModule {
  /**
   * Returns the module to import. Nest creates the providers with their dependencies, once for the application.
   *
   * @throws as `createGateway` does. When Nest creates a provider without a method for an RPC, throws a TypeError
   */
  static forRoot(moduleOptions: ConnectModuleOptions): ConnectDynamicModule {
    const { services, imports = [], ignoredMiddleware, ...options } = moduleOptions;
    refuseIgnoredOptions(options, { routes: "list the providers in services" }, "ConnectModule.forRoot");
    refuseUnknownOptions(
      { services, ignoredMiddleware },
      { services: arrayOf({ service: required, provider: required }, required), ignoredMiddleware: arrayOf() },
      "ConnectModule.forRoot",
    );
    const inject = services.map(({ provider }) => provider);
    // A class that Nest creates for each request would make the gateway one too, if the gateway injected the class.
    const key = Symbol("the gateway's parts");
    const created: FactoryProvider = { provide: key, inject: [], useFactory: () => ({ parts: undefined }) };
    const gateway: FactoryProvider = {
      provide: ConnectGateway,
      inject: [key],
      useFactory: (parts: CreatedParts) => new ConnectGateway(parts, inject),
    };
    const opened: FactoryProvider = {
      provide: Symbol("the gateway's mount"),
      inject: [key, ...inject],
      useFactory: (holder: CreatedParts, ...instances: readonly object[]) => {
        const providers = services.map(({ service, provider }, at) => complete(service, provider, instances[at]));
        const routes = (router: ConnectRouter): void => {
          services.forEach(({ service }, at) => router.service(service, providers[at]?.instance ?? {}));
        };
        const checks = new Map<string, GuardCheck>();
        const mount = createGuardedMount({ ...options, routes }, checks);
        return Object.assign(holder, { parts: { mount, providers, ignoredMiddleware, checks } });
      },
    };
    const providers = [...inject, created, gateway, opened];
    return { module: ConnectModule, imports: [...imports], providers, exports: [ConnectGateway] };
  }
}

/** Creates the mount that runs checks after the program's `admit`. */
function createGuardedMount(options: ExpressConnectOptions, checks: ReadonlyMap<string, GuardCheck>): ClosableMount {
  const responses = new WeakMap<object, object>();
  const admit: Admit = (request) => {
    const admitted = options.admit?.(request);
    if (checks.size === 0) return admitted;
    const raw = mount.requestOf(request.contextValues);
    const response = raw && responses.get(raw);
    return (async () => {
      const admitProcedure = await admitted;
      return async (...[procedure, descriptor]: Parameters<AdmitProcedure>): Promise<void> => {
        await admitProcedure?.(procedure, descriptor);
        // The middleware provides both for each request. Guards cannot run without Nest's request and response.
        if (raw === undefined || response === undefined) throw new TypeError("guards need a request of Nest");
        await checks.get(procedure)?.(raw, response);
      };
    })();
  };
  const { requireChecked } = options.admit ?? {};
  const mount = createMount<Parameters<NodeHandler>[0]>({
    toError: (thrown) => fromHttpException(thrown) ?? toErrorDefault(thrown),
    ...options,
    admit: Object.assign(admit, { requireChecked }),
  });
  return {
    ...mount,
    serve: (request, response, next) => {
      responses.set(request, response);
      mount.serve(request, request, response, next);
    },
  };
}

/** Returns a provider. Refuses a provider that lacks a method, because types do not check JavaScript code. */
function complete(service: DescService, type: Class<object>, instance: object = {}): RpcProvider {
  const { methods, typeName } = service;
  const names = methods.map(({ localName }) => localName);
  const missing = names.find((name) => typeof Reflect.get(instance, name) !== "function");
  if (missing === undefined) return { type, service, instance, methods: names };
  throw new TypeError(`${instance.constructor.name} has no method "${missing}" of ${typeName}`);
}

/** Nest's `Scope.REQUEST`. */
const requestScope = 2;

/** Returns the error for providers that Nest creates for each request, with the dependencies that cause this. */
function describeScoped(types: readonly object[], container: NestContainer): string {
  const wrappers = [...container.getModules().values()].flatMap(({ providers }) =>
    types.flatMap((type) => providers.get(type) ?? []),
  );
  const scoped = wrappers.filter((each) => !each.isDependencyTreeStatic());
  const chains = [...new Set(scoped.map((each) => chainOf(each, new Set()).join(" → ")))];
  return (
    `Nest creates providers of ConnectModule for each request: ${chains.join(", ")}. Remove the scope REQUEST, and ` +
    "read the request from the option contextValues"
  );
}

/** Returns the names from a provider to the dependency that is request-scoped. */
function chainOf(wrapper: InstanceWrapper, seen: Set<InstanceWrapper>): readonly string[] {
  const name = String(wrapper.name);
  seen.add(wrapper);
  if (wrapper.scope === requestScope) return [name];
  const properties = (wrapper.getPropertiesMetadata() ?? []).map((property) => property.wrapper);
  const lists = [wrapper.getCtorMetadata(), properties, wrapper.getEnhancersMetadata()];
  const dependencies = lists.flatMap((each) => each ?? []);
  const cause = dependencies.find((each) => !seen.has(each) && !each.isDependencyTreeStatic());
  return cause === undefined ? [name] : [name, ...chainOf(cause, seen)];
}
