import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter, ServiceImpl } from "@connectrpc/connect";
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

/** The gateway of a Nest application on Express, its default platform; `app.get(ConnectGateway)` returns it. */
export class ConnectGateway {
  readonly #middleware: ExpressConnectMiddleware;
  #isMounted = false;

  constructor(options: ExpressConnectOptions) {
    this.#middleware = expressConnectMiddleware(options);
  }

  /** Adds the middleware of the gateway. Call it before `app.init` and `app.listen`, which add Nest's body parsers. */
  mount(app: { use(middleware: ExpressConnectMiddleware): unknown }): void {
    app.use(this.#middleware);
    this.#isMounted = true;
  }

  /** Called by Nest at the start. Throws if the gateway is not mounted, because no RPC would be served. */
  onApplicationBootstrap(): void {
    if (!this.#isMounted) throw new Error("call app.get(ConnectGateway).mount(app) before app.init or app.listen");
  }

  /** Called by Nest before it closes the server. */
  beforeApplicationShutdown(): void {
    this.#middleware.close();
  }
}

/** The module of Nest whose providers implement Connect services. */
// oxlint-disable-next-line typescript/no-extraneous-class -- Nest's form of a configurable module
export class ConnectModule {
  /**
   * Returns the module to import. Nest creates the providers with their dependencies, once for the application.
   *
   * @throws as `createGateway` does, and TypeError for a provider without a method for an RPC, when Nest creates it
   */
  static forRoot({ services, imports = [], ...options }: ConnectModuleOptions): ConnectDynamicModule {
    const inject = services.map(({ provider }) => provider);
    const useFactory: GatewayFactory = (...providers) => {
      const routes = (router: ConnectRouter): void => {
        services.forEach(({ service }, at) => router.service(service, complete(service, providers[at])));
      };
      return new ConnectGateway({ ...options, routes });
    };
    const gateway = { provide: ConnectGateway, inject, useFactory };
    const providers = [...inject, gateway];
    return { module: ConnectModule, imports: [...imports], providers, exports: [ConnectGateway] };
  }
}

/** Returns a provider. Refuses one that lacks a method, which the types cannot check in JavaScript. */
function complete(service: DescService, provider: object = {}): object {
  const missing = service.methods.find(({ localName }) => typeof Reflect.get(provider, localName) !== "function");
  if (missing === undefined) return provider;
  throw new TypeError(`${provider.constructor.name} has no method "${missing.localName}" of ${service.typeName}`);
}
