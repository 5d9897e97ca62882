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

/** The members of Nest's class `ServerGrpc` that a strategy uses. */
export interface GrpcServer {
  /** Called by Nest for each method of a controller, with the function that runs the method and its enhancers. */
  addHandler(...handler: readonly unknown[]): unknown;
  /** Loads the definitions, and adds a service for each definition to the `createClient` result. */
  bindEvents(): Promise<void>;
  /** Returns the function that runs a controller's method. The arguments identify the method. */
  getMessageHandler(...method: readonly unknown[]): MessageHandler | null | undefined;
}

/** The `Transport.GRPC` options that only a grpc-js server has, and the alternative for each option. */
export const ignoredGrpcOptions: Readonly<Record<string, string>> = {
  url: "set listen of the third argument, such as { host, port }",
  credentials: "set tls of the option listen",
  maxReceiveMessageLength: "set gateway.readMaxBytes of the third argument",
  maxSendMessageLength: "responses have no limit",
  maxMetadataSize: "header fields have a limit of the gateway",
  keepalive: "connections have timeouts of the gateway",
  channelOptions: "they are options of a server of grpc-js",
  gracefulShutdown: "set closeTimeoutMs of the third argument",
  onLoadPackageDefinition: "add services with gateway.routes of the third argument",
};

/** The request stream that Nest passes to a method with `@GrpcStreamMethod`. */
interface BufferedRequests {
  /** Passes on the buffered requests. Nest calls the function once the method has subscribed to the requests. */
  drainBuffer(): void;
}

/** The members of a grpc-js call that pause its requests. */
interface PausableCall {
  pause(): unknown;
  resume(): unknown;
}

/** Nest's function for an RPC, which runs guards, interceptors, pipes, and a controller's method. */
type MessageHandler = (data: object, metadata: object, call: PausableCall) => unknown;

/**
 * Returns a handler that reads requests once the controller has subscribed to them. Nest buffers requests while a guard
 * or an interceptor waits, but drops all buffered requests if the client half-closes meanwhile.
 */
export function holdRequests(handler: MessageHandler): MessageHandler {
  return (data, metadata, call) => handler(isBuffered(data) ? hold(data, call) : data, metadata, call);
}

function isBuffered(data: object): data is BufferedRequests {
  return "drainBuffer" in data;
}

function hold(requests: BufferedRequests, call: PausableCall): object {
  call.pause();
  const drainBuffer = (): void => {
    requests.drainBuffer();
    // Runs after the `setImmediate` callback in which Nest passes on the buffered requests.
    setImmediate(() => call.resume());
  };
  return Object.create(requests, { drainBuffer: { value: drainBuffer } });
}
