import {
  applicationOf,
  type CallCloser,
  type Enhancer,
  enhancersOf,
  type MiddlewareClass,
  type MountableApplication,
  type MountedGateway,
  mountInNest,
} from "@protoport/frameworks/nest-mount";
import type { Gateway } from "@protoport/gateway";
import type { GrpcServer } from "./grpc-server.ts";

/** The member of Nest's HTTP adapters that `app.listen` calls. */
interface ListeningAdapter {
  listen(...to: readonly unknown[]): unknown;
}

/** A strategy to mount. */
interface MountedStrategy {
  readonly server: GrpcServer;
  readonly closer: CallCloser;
  /** The middleware classes that need not run. */
  readonly ignoredMiddleware: readonly MiddlewareClass[] | undefined;
  /** Returns the gateway, or `undefined` if the strategy has not started. */
  readonly gateway: () => Gateway | undefined;
}

/** Returns a strategy's gateway. @throws Error if the strategy has not started */
export function requireStarted(gateway: Gateway | undefined): Gateway {
  if (gateway !== undefined) return gateway;
  throw new Error("the gateway has not started: call app.startAllMicroservices() before app.listen()");
}

/**
 * Mounts a strategy's gateway in an application, whose close also closes the strategy's calls. The application cannot
 * listen before the strategy has started. Returns a function to call when the gateway has started, which throws if RPCs
 * would skip middleware of modules.
 *
 * @throws Error for global guards that would not run
 */
export function mountStrategy(
  app: MountableApplication,
  { server, closer, ignoredMiddleware, gateway }: MountedStrategy,
): () => void {
  const refuseGuards = refuseSkippedGuards(app, server);
  const started = (): Gateway => requireStarted(gateway());
  const mounted: MountedGateway = {
    get routes() {
      return gateway()?.routes ?? [];
    },
    matches: (request) => started().matches(request),
    followConnections: (httpServer) => closer.followConnections(httpServer),
    serve: (...exchange) => closer.serve(started().handler, ...exchange),
  };
  const refuseMiddleware = mountInNest(app, mounted, ignoredMiddleware);
  const adapter: ListeningAdapter = Reflect.get(app, "getHttpAdapter").call(app);
  const listen = adapter.listen.bind(adapter);
  adapter.listen = (...to) => {
    started();
    return listen(...to);
  };
  // Nest calls the hooks of providers. Nest closes microservices only when all requests of the application have ended.
  const hooks = {
    onApplicationBootstrap: () => {
      refuseGuards();
      refuseMiddleware();
    },
    beforeApplicationShutdown: () => closer.close(),
  };
  const [module = {}] = applicationOf(app).container.getModules().values();
  Reflect.get(module, "addProvider").call(module, { provide: Symbol("gateway strategy"), useValue: hooks });
  return refuseMiddleware;
}

/**
 * Checks that an application's global guards run for a strategy's RPCs, and adds its handlers again if Nest has added them
 * already. Returns a function that checks again when all guards are known.
 *
 * @throws Error for guards that would not run
 */
function refuseSkippedGuards(app: object, strategy: GrpcServer): () => void {
  const { configuration } = applicationOf(app);
  const listGuards = (): Enhancer[] => enhancersOf("Guards", configuration, []);
  const findMicroservice = (): object | undefined => {
    const all: readonly object[] = Reflect.get(app, "getMicroservices").call(app);
    return all.find((each) => Reflect.get(each, "serverInstance") === strategy);
  };
  const inherits = (microservice: object): boolean =>
    Reflect.get(microservice, "applicationConfig") === configuration.config;
  const check = (applied: readonly Enhancer[]): void => {
    const known = applied.map(({ declared }) => declared);
    const skipped = listGuards().filter(({ declared }) => !known.includes(declared));
    if (skipped.length === 0) return;
    const labels = skipped.map(({ label }) => label).join(", ");
    throw new Error(`RPCs would skip global guards of the application: ${labels}. ${howToInherit}`);
  };
  // Nest reads the guards when it adds the handlers.
  let applied: readonly Enhancer[] | undefined;
  const addHandler = strategy.addHandler.bind(strategy);
  strategy.addHandler = (...handler) => {
    applied ??= listGuards();
    return addHandler(...handler);
  };
  const connected = findMicroservice();
  if (connected !== undefined && !inherits(connected)) check([]);
  // Nest does not record which guards the handlers have, so the handlers are added again, with the guards known now.
  if (connected !== undefined && Reflect.get(connected, "isInitialized") === true) {
    Reflect.get(connected, "registerListeners").call(connected);
  }
  return () => {
    const microservice = findMicroservice();
    check(microservice !== undefined && inherits(microservice) ? (applied ?? listGuards()) : []);
  };
}

const howToInherit = "Call app.connectMicroservice({ strategy }, { inheritAppConfig: true }) after app.useGlobalGuards";
