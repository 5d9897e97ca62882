/** Mounts gateways in Nest applications on Express and Fastify. */
import type { EventEmitter } from "node:events";
import type { Gateway, GatewayRoute, NodeHandler } from "@protoport/gateway";
import type { CallCloser } from "./call-closer.ts";
import { applicationOf, type NestConfiguration } from "./nest-enhancers.ts";

export { CallCloser } from "./call-closer.ts";
export { fromHttpException } from "./http-exception.ts";
export { ipOf } from "./mount.ts";
export { applicationOf, type Enhancer, enhancersOf } from "./nest-enhancers.ts";

/** Middleware, in the form of Express. */
export type Handler = (...exchange: Required<Parameters<NodeHandler>>) => void;
type Register = (path: string, middleware: Handler) => unknown;

/** The members of a Nest application that a mount uses. */
export interface MountableApplication {
  use(middleware: Handler): unknown;
}

/** A gateway that is mounted in a Nest application. */
export interface MountedGateway extends Pick<Gateway, "matches" | "routes">, Pick<CallCloser, "followConnections"> {
  readonly serve: Handler;
}

/** The members that a mount uses from Nest's HTTP adapters. */
export interface HttpAdapter {
  getType(): string;
  getInstance(): object;
  getHttpServer(): EventEmitter;
  /** Returns the function with which Nest registers the middleware that modules configure. */
  createMiddlewareFactory: (this: HttpAdapter, httpMethod: number) => Register | Promise<Register>;
}

/**
 * Adds a gateway's middleware to an application. For the gateway's requests, the middleware that modules configure runs
 * first, for the same paths as in the application. Returns a function to call when the application has started, which
 * throws if a global prefix keeps that middleware from running for a route.
 *
 * @throws TypeError if `app` is not the application that `NestFactory.create` returns
 */
export function mountInNest(app: MountableApplication, gateway: MountedGateway): () => void {
  const { configuration } = applicationOf(app);
  const adapter: HttpAdapter = Reflect.get(app, "getHttpAdapter").call(app);
  gateway.followConnections(adapter.getHttpServer());
  const { runOf, paths } = followModuleMiddleware(adapter);
  app.use((request, response, next) => {
    const run = runOf();
    if (run === undefined) return gateway.serve(request, response, next);
    if (!gateway.matches(request)) return next();
    run(request, response, (error) => {
      if (error) next(error);
      // Middleware may call `next` after it has responded.
      else if (!response.writableEnded) gateway.serve(request, response, next);
    });
  });
  return () => refuseSkippedMiddleware(configuration, gateway.routes, paths);
}

/** Throws if middleware of modules would run for a route, but has the global prefix, which the route lacks. */
function refuseSkippedMiddleware(
  { config }: NestConfiguration,
  routes: readonly GatewayRoute[],
  middlewarePaths: readonly string[],
): void {
  const name = String(Reflect.get(config, "getGlobalPrefix").call(config)).replaceAll(/^\/+|\/+$/g, "");
  if (name === "") return;
  const prefix = `/${name}`;
  const options: { readonly exclude?: readonly { readonly pathRegex: RegExp }[] } = Reflect.get(
    config,
    "getGlobalPrefixOptions",
  ).call(config);
  for (const { path } of routes) {
    // Clients expect these paths at the root (RFC 8615 §3), also if the gateway has the prefix.
    if (path.startsWith("/.well-known/")) continue;
    if (path.startsWith(`${prefix}/`) || options.exclude?.some(({ pathRegex }) => pathRegex.test(path))) continue;
    const skipped = middlewarePaths.find(
      (each) => each.startsWith(`${prefix}/`) && overlap(each.slice(prefix.length), path),
    );
    if (skipped === undefined) continue;
    throw new Error(
      `${path} would skip middleware of modules for ${skipped}, because the global prefix does not apply to RPCs. ` +
        `Set the gateway's option requestPathPrefix to "${prefix}", or add the path to exclude of app.setGlobalPrefix`,
    );
  }
}

/** Returns whether two paths or patterns may match the same path, judged by the texts before their first variables. */
function overlap(one: string, other: string): boolean {
  const [start, otherStart] = [one, other].map((pattern) => pattern.replace(/[{*:(].*/, ""));
  if (start === one && otherStart === other) return one === other;
  // A path without variables must begin with the other's start.
  return (start !== one && other.startsWith(start ?? "")) || (otherStart !== other && one.startsWith(otherStart ?? ""));
}

/** Returns what runs the middleware of modules, or `undefined` if modules configure none, and the middleware's paths. */
function followModuleMiddleware(adapter: HttpAdapter): {
  readonly runOf: () => Handler | undefined;
  readonly paths: readonly string[];
} {
  let chain: Chain | undefined;
  const paths: string[] = [];
  const createRegister = adapter.createMiddlewareFactory.bind(adapter);
  const { createMiddlewareFactory }: HttpAdapter = Object.getPrototypeOf(adapter);
  adapter.createMiddlewareFactory = async (httpMethod) => {
    const { instance } = (chain ??= createChain(adapter));
    // The adapter itself registers in the chain, so that paths match as in the application. `middieContexts` are the
    // child contexts in which the Fastify adapter also registers.
    const copy: unknown = Object.create(adapter, { instance: { value: instance }, middieContexts: { value: [] } });
    const register = await createRegister(httpMethod);
    const registerInChain: Register = await Reflect.apply(createMiddlewareFactory, copy, [httpMethod]);
    return (path, middleware) => {
      paths.push(path);
      register(path, middleware);
      registerInChain(path, middleware);
    };
  };
  return { runOf: () => chain?.run, paths };
}

/** The middleware of modules, apart from the application's own chain. */
interface Chain {
  /** Replaces the adapter's Express or Fastify instance. */
  readonly instance: object;
  readonly run: Handler;
}

function createChain(adapter: HttpAdapter): Chain {
  const type = adapter.getType();
  if (type === "fastify") {
    const chain: Handler[] = [];
    const use = (_path: string, middleware: Handler): unknown => chain.push(middleware);
    return { instance: Object.create(adapter.getInstance(), { use: { value: use } }), run: runEach(chain) };
  }
  if (type !== "express") throw new Error(`middleware of modules cannot run for RPCs with Nest's adapter for ${type}`);
  // A new application of Nest's copy of Express, for its router.
  const instance: { readonly router: Handler } = Reflect.construct(adapter.constructor, []).getInstance();
  return { instance, run: instance.router };
}

/** Returns a function that runs middleware in order, until one fails or does not call `next`. */
function runEach(chain: readonly Handler[]): Handler {
  return (request, response, done) => {
    const { url = "" } = request;
    const runFrom = (at: number, error?: Error): void => {
      // The adapter strips paths from `url`, as Express does.
      request.url = url;
      const middleware = chain[at];
      if (error || middleware === undefined) return done(error);
      middleware(request, response, (failure) => runFrom(at + 1, failure));
    };
    runFrom(0);
  };
}
