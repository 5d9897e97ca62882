/** Serves NestJS controllers with `@GrpcMethod`, `@GrpcStreamMethod` and `@GrpcStreamCall`. */
import type { ServiceDefinition, UntypedServiceImplementation } from "@grpc/grpc-js";
import { createGateway, type Gateway, type GatewayOptions, type ListenOptions } from "@protoport/gateway";
import { CallCloser, ipOf, type MiddlewareClass, type MountableApplication } from "@protoport/frameworks/nest-mount";
import { arrayOf, type OptionNames, refuseIgnoredOptions, refuseUnknownOptions } from "@protoport/gateway/options";
import { addGrpcJsService, type GrpcJsOptions } from "./grpc-js.ts";
import {
  type GrpcServer,
  holdRequests,
  ignoredGrpcOptions,
  mountStrategy,
  requireStarted,
  withStatuses,
} from "./nestjs/index.ts";

export type { MountableApplication } from "@protoport/frameworks/nest-mount";
export type { GrpcServer } from "./nestjs/index.ts";
export { readServices, type HandlerDescriptors } from "./grpc-js.ts";

/** Options for {@link createGatewayStrategy}. */
export interface GatewayStrategyOptions extends GrpcJsOptions {
  /** The `createGateway` options. `routes` adds services, such as health and reflection. */
  readonly gateway?: Partial<GatewayOptions>;
  /** Listens on a separate port or socket. Without `listen`, call `mount` with an application on Express or Fastify. */
  readonly listen?: ListenOptions;
  /** When Nest closes, milliseconds after which calls in flight are aborted. Defaults to 10,000. */
  readonly closeTimeoutMs?: number;
  /** The middleware classes that RPCs may skip where a global prefix keeps the middleware from their paths. */
  readonly ignoredMiddleware?: readonly MiddlewareClass[];
}

const strategyOptionNames: OptionNames<GatewayStrategyOptions> = {
  descriptors: true,
  interceptors: true,
  exposeErrorMessages: true,
  messages: true,
  gateway: true,
  listen: true,
  closeTimeoutMs: true,
  ignoredMiddleware: arrayOf(),
};

/** The members that a strategy adds to Nest's server. */
export interface GatewayStrategy {
  /**
   * Serves the RPCs in an application on Express or Fastify. Call `mount` before `app.init` and `app.listen`, which add
   * Nest's body parsers and its response for unknown paths. Call `app.startAllMicroservices` after `mount`, and before
   * `app.listen`. For calls, middleware that modules configure for their paths runs first.
   *
   * @throws Error if the microservice has started, the application is initialized, or RPCs would skip global guards
   * @throws TypeError if `app` is not the application that `NestFactory.create` returns
   */
  mount(app: MountableApplication): void;
  /**
   * Returns the gateway that listens, or else the mounted gateway.
   *
   * @throws Error before Nest has started the microservice
   */
  unwrap(): Gateway;
}

/**
 * Returns a transport strategy that serves controllers over REST, gRPC-Web, Connect and gRPC, instead of `transport:
 * Transport.GRPC`. Guards, pipes, interceptors and exception filters run for all protocols.
 *
 * @param ServerGrpc - the `@nestjs/microservices` class
 * @param grpcOptions - the `Transport.GRPC` options: `package`, `protoPath` and `loader`, or `packageDefinition`
 * @throws TypeError for unknown options, and for grpc-js server options, because the strategy has no grpc-js server
 */
export function createGatewayStrategy<Options extends object, Base extends GrpcServer>(
  ServerGrpc: new (options: Options) => Base,
  grpcOptions: Options,
  options: GatewayStrategyOptions = {},
): GatewayStrategy & Omit<Base, keyof GatewayStrategy> {
  refuseIgnoredOptions(grpcOptions, ignoredGrpcOptions, "createGatewayStrategy");
  refuseUnknownOptions(options, strategyOptionNames, "createGatewayStrategy");
  const { gateway: gatewayOptions = {}, listen, closeTimeoutMs, ignoredMiddleware, ...handlerOptions } = options;
  const services: (readonly [ServiceDefinition, UntypedServiceImplementation])[] = [];
  const closer = new CallCloser(closeTimeoutMs, gatewayOptions.shutdownSignal);
  // Only the mounted gateway gets clients from the framework, because the framework's requests do not reach `listen`.
  let listening: Gateway | undefined;
  let mounted: Gateway | undefined;
  let refuseSkippedMiddleware: (() => void) | undefined;
  let isClosed = false;
  const server = new ServerGrpc(grpcOptions);
  const getMessageHandler = server.getMessageHandler.bind(server);
  const create = (more: Partial<GatewayOptions>): Gateway =>
    createGateway({
      ...more,
      ...gatewayOptions,
      shutdownSignal: closer.signal,
      routes: (router) => {
        for (const [definition, handlers] of services) addGrpcJsService(router, definition, handlers, handlerOptions);
        gatewayOptions.routes?.(router);
      },
    });
  return Object.assign(server, {
    // Nest adds its controllers' services to the returned object, as to a grpc-js server.
    createClient: async () => ({
      addService: (definition: ServiceDefinition, handlers: UntypedServiceImplementation): void =>
        void services.push([definition, withStatuses(handlers)]),
    }),
    getMessageHandler(...method: readonly unknown[]): ReturnType<typeof getMessageHandler> {
      const handler = getMessageHandler(...method);
      return handler && holdRequests(handler);
    },
    async start(callback?: () => void): Promise<void> {
      if (listen === undefined && refuseSkippedMiddleware === undefined)
        throw new Error(`no client can reach the RPCs: ${howToServe}`);
      await server.bindEvents();
      if (isClosed) throw new Error("the strategy was closed before it had started");
      if (listen !== undefined) listening = create({});
      if (refuseSkippedMiddleware !== undefined) mounted = create({ clientAddress: ipOf });
      refuseSkippedMiddleware?.();
      await listening?.listen(listen);
      callback?.();
    },
    async close(): Promise<void> {
      isClosed = true;
      if (listen !== undefined) return await listening?.drain(closer.timeoutMs);
      closer.close();
    },
    unwrap: () => requireStarted(listening ?? mounted),
    mount: (app: MountableApplication): void => {
      if ((listening ?? mounted) !== undefined || isInitialized(app)) throw new Error(howToMount);
      refuseSkippedMiddleware = mountStrategy(app, { server, closer, ignoredMiddleware, gateway: () => mounted });
    },
  });
}

const howToMount = "call strategy.mount(app) before app.startAllMicroservices(), app.init() and app.listen()";
const howToServe = "set the option listen, or call strategy.mount(app) before app.startAllMicroservices()";

/** Returns whether Nest has added its response for unknown paths. Middleware that is added later never runs. */
function isInitialized(app: object): boolean {
  return "isInitialized" in app && app.isInitialized === true;
}
