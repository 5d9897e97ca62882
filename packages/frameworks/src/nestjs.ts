import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter, ServiceImpl } from "@connectrpc/connect";
import { arrayOf, refuseIgnoredOptions, refuseUnknownOptions, required } from "@plantstore/gateway/options";
import {
  configurationOf,
  type Enhancer,
  enhancersOf,
  type NestConfiguration,
  type RpcProvider,
} from "./nest-enhancers.ts";
import { type ExpressConnectMiddleware, type ExpressConnectOptions, expressConnectMiddleware } from "./express.ts";

// oxlint-disable-next-line typescript/no-explicit-any -- Nest's type of classes
type Class<Instance extends object> = new (...dependencies: any[]) => Instance;

/** A Connect service and the class of the provider that implements it. */
export interface ConnectProvider {
  readonly service: DescService;
  readonly provider: Class<object>;
}

/** Declares that a provider implements all RPCs of a Connect service. */
export function implementedBy<Service extends DescService>(
  service: Service,
  provider: Class<ServiceImpl<Service>>,
): ConnectProvider {
  return { service, provider };
}

/** Options of {@link ConnectModule.forRoot}: those of the middleware for Express, with `services` as the routes. */
export interface ConnectModuleOptions extends Omit<ExpressConnectOptions, "routes"> {
  readonly services: readonly ConnectProvider[];
  /** The modules that export the dependencies of the providers. */
  readonly imports?: readonly ImportedModule[];
  /**
   * The classes of guards that need not run for RPCs. Nest runs no guards for RPCs. Therefore, the start is refused if
   * other guards are declared for providers, for methods that are RPCs, or for the whole application. Default: none.
   */
  readonly ignoredGuards?: readonly Class<object>[];
}

/** A class of a module, or a dynamic module such as the result of `ConfigModule.forRoot`, which may be a promise. */
export type ImportedModule = Class<object> | NestDynamicModule | Promise<NestDynamicModule>;

/** The member that all dynamic modules of Nest have. */
interface NestDynamicModule {
  readonly module: Class<object>;
}

/** A dynamic module of Nest, whose types have mutable arrays. */
export interface ConnectDynamicModule {
  module: Class<object>;
  imports: ImportedModule[];
  providers: (Class<object> | { provide: Class<object>; inject: Class<object>[]; useFactory: GatewayFactory })[];
  exports: Class<object>[];
}

type GatewayFactory = (...providers: readonly object[]) => ConnectGateway;

/** The parts of a gateway that Nest has created. */
interface ConnectGatewayParts {
  readonly middleware: ExpressConnectMiddleware;
  readonly providers: readonly RpcProvider[];
  readonly ignoredGuards: ReadonlySet<unknown>;
}

/** The gateway of a Nest application on Express or Fastify; `app.get(ConnectGateway)` returns it. */
export class ConnectGateway {
  readonly #parts: ConnectGatewayParts;
  #configuration: NestConfiguration | undefined;

  /** Called by {@link ConnectModule.forRoot}. */
  constructor(parts: ConnectGatewayParts) {
    this.#parts = parts;
  }

  /**
   * Adds the middleware of the gateway. Call it before `app.init` and `app.listen`, which add Nest's body parsers.
   *
   * @throws TypeError if `app` is not the application that `NestFactory.create` returns
   */
  mount(app: { use(middleware: ExpressConnectMiddleware): unknown }): void {
    this.#configuration = configurationOf(app);
    app.use(this.#parts.middleware);
  }

  /**
   * Called by Nest at the start. Throws if the gateway is not mounted, because no RPC would be served, and if there are
   * guards that `ignoredGuards` does not list, because Nest does not run them for RPCs. Warns of pipes, interceptors and
   * exception filters, which do not run either.
   */
  onApplicationBootstrap(): void {
    const configuration = this.#configuration;
    if (!configuration) throw new Error("call app.get(ConnectGateway).mount(app) before app.init or app.listen");
    const { providers, ignoredGuards } = this.#parts;
    const guards = enhancersOf("Guards", configuration, providers).filter(({ type }) => !ignoredGuards.has(type));
    if (guards.length > 0) {
      throw new Error(
        `Nest runs no guards for RPCs: ${labelsOf(guards)}. Check callers with the option admit or an interceptor of ` +
          "Connect; then accept guards that are not needed with the option ignoredGuards",
      );
    }
    const kinds = ["Pipes", "Interceptors", "Filters"] as const;
    const others = kinds.flatMap((kind) => enhancersOf(kind, configuration, providers));
    if (others.length === 0) return;
    process.emitWarning(`Nest runs no pipes, interceptors or exception filters for RPCs: ${labelsOf(others)}`);
  }

  /** Called by Nest before it closes the server. */
  beforeApplicationShutdown(): void {
    this.#parts.middleware.close();
  }
}

function labelsOf(enhancers: readonly Enhancer[]): string {
  return enhancers.map(({ label }) => label).join(", ");
}

/** The module of Nest whose providers implement Connect services. */
// oxlint-disable-next-line typescript/no-extraneous-class -- Nest's form of a configurable module
export class ConnectModule {
  /**
   * Returns the module to import. Nest creates the providers with their dependencies, once for the application.
   *
   * @throws as `createGateway` does, and TypeError for a provider without a method for an RPC, when Nest creates it
   */
  static forRoot(moduleOptions: ConnectModuleOptions): ConnectDynamicModule {
    const { services, imports = [], ignoredGuards = [], ...options } = moduleOptions;
    refuseIgnoredOptions(options, { routes: "list the providers in services" }, "ConnectModule.forRoot");
    refuseUnknownOptions(
      { services },
      { services: arrayOf({ service: required, provider: required }, required) },
      "ConnectModule.forRoot",
    );
    const inject = services.map(({ provider }) => provider);
    const useFactory: GatewayFactory = (...instances) => {
      const providers = services.map(({ service, provider }, at) => complete(service, provider, instances[at]));
      const routes = (router: ConnectRouter): void => {
        services.forEach(({ service }, at) => router.service(service, providers[at]?.instance ?? {}));
      };
      const middleware = expressConnectMiddleware({ ...options, routes });
      return new ConnectGateway({ middleware, providers, ignoredGuards: new Set(ignoredGuards) });
    };
    const gateway = { provide: ConnectGateway, inject, useFactory };
    const providers = [...inject, gateway];
    return { module: ConnectModule, imports: [...imports], providers, exports: [ConnectGateway] };
  }
}

/** Returns a provider. Refuses one that lacks a method, which the types cannot check in JavaScript. */
function complete({ methods, typeName }: DescService, type: Class<object>, instance: object = {}): RpcProvider {
  const names = methods.map(({ localName }) => localName);
  const missing = names.find((name) => typeof Reflect.get(instance, name) !== "function");
  if (missing === undefined) return { type, instance, methods: names };
  throw new TypeError(`${instance.constructor.name} has no method "${missing}" of ${typeName}`);
}
