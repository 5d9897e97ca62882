/** Mounts gateways in Nest applications on Express and Fastify. */
import type { EventEmitter } from "node:events";
import type { Gateway, GatewayRoute, NodeHandler } from "@protoport/gateway";
import type { CallCloser } from "./mount.ts";
import { applicationOf, type NestApplication, type NestConfiguration } from "./nest-enhancers.ts";

export { CallCloser, ipOf } from "./mount.ts";
export { applicationOf, type Enhancer, enhancersOf, fromHttpException } from "./nest-enhancers.ts";

/** Middleware, in the form of Express. */
export type Handler = (...exchange: Required<Parameters<NodeHandler>>) => void;
type Register = (path: string, middleware: Handler) => unknown;

/** The members of a Nest application that a mount uses. */
export interface MountableApplication {
  use(middleware: Handler): unknown;
}

/** A middleware class. `never` accepts classes with any dependencies. */
export type MiddlewareClass = new (...dependencies: never[]) => object;

/** A gateway that is mounted in a Nest application. */
export interface MountedGateway extends Pick<Gateway, "matches" | "routes">, Pick<CallCloser, "followConnections"> {
  readonly serve: Handler;
}

/** The members that a mount uses from Nest's HTTP adapters. */
interface HttpAdapter {
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
 * @param ignored - the middleware classes that need not run
 * @throws TypeError if `app` is not the application that `NestFactory.create` returns
 */
export function mountInNest(
  app: MountableApplication,
  gateway: MountedGateway,
  ignored: readonly MiddlewareClass[] = [],
): () => void {
  const application = applicationOf(app);
  const adapter: HttpAdapter = Reflect.get(app, "getHttpAdapter").call(app);
  gateway.followConnections(adapter.getHttpServer());
  const { runOf, configured } = followModuleMiddleware(adapter, application);
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
  return () => {
    const enforced = configured.filter(({ type }) => !ignored.some((each) => isClass(type, each)));
    refuseSkippedMiddleware(application.configuration, gateway.routes, enforced);
  };
}

/** Middleware that a module configures for a path. */
interface ModuleMiddleware {
  readonly path: string;
  /** The class. Nest creates a class for a function. */
  readonly type: object;
}

/** Returns whether a type is a class, or the subclass that Nest creates to exclude paths. */
function isClass(type: object, expected: MiddlewareClass): boolean {
  return type === expected || (Object.getPrototypeOf(type) === expected && Reflect.get(type, "name") === expected.name);
}

/** Throws if middleware of modules would run for a route, but has the global prefix, which the route lacks. */
function refuseSkippedMiddleware(
  { config }: NestConfiguration,
  routes: readonly GatewayRoute[],
  configured: readonly ModuleMiddleware[],
): void {
  const name = String(Reflect.get(config, "getGlobalPrefix").call(config)).replaceAll(/^\/+|\/+$/g, "");
  if (name === "") return;
  const prefix = `/${name}`;
  for (const { path } of routes) {
    // Clients expect these paths at the root (RFC 8615 §3), also if the gateway has the prefix.
    if (path.startsWith("/.well-known/") || path.startsWith(`${prefix}/`)) continue;
    const skipped = configured.find(
      (each) =>
        each.path.startsWith(`${prefix}/`) &&
        overlap(each.path.slice(prefix.length), path) &&
        // Nest also registers middleware for the paths in `exclude` of `setGlobalPrefix`.
        !configured.some(({ type, path: pattern }) => type === each.type && covers(pattern, path)),
    );
    if (skipped === undefined) continue;
    throw new Error(
      `${path} would skip middleware of modules for ${skipped.path}, because the global prefix does not apply to ` +
        `RPCs. Set the gateway's option requestPathPrefix to "${prefix}", add the path to exclude of ` +
        "app.setGlobalPrefix, or list the middleware's class in ignoredMiddleware",
    );
  }
}

/** Returns whether a pattern matches every path of a route. May return `false` for patterns that do. */
function covers(pattern: string, path: string): boolean {
  const segments = path.split("/");
  const parts = pattern.split("/");
  const wildcardAt = parts.findIndex((part) => /^(\{?\*|\(\.\*\))/.test(part));
  if (wildcardAt < 0 && parts.length !== segments.length) return false;
  return parts.slice(0, wildcardAt < 0 ? undefined : wildcardAt).every((part, at) => {
    const segment = segments[at] ?? "";
    return part === segment || (/^:\w+$/.test(part) && segment !== "" && !segment.includes("**"));
  });
}

/** Returns whether two paths or patterns may match the same path, judged by the texts before their first variables. */
function overlap(one: string, other: string): boolean {
  const [start, otherStart] = [one, other].map((pattern) => pattern.replace(/[{*:(].*/, ""));
  if (start === one && otherStart === other) return one === other;
  // A path without variables must begin with the other's start.
  return (start !== one && other.startsWith(start ?? "")) || (otherStart !== other && one.startsWith(otherStart ?? ""));
}

/** Returns what runs the middleware of modules, or `undefined` if modules configure none, and the middleware itself. */
function followModuleMiddleware(
  adapter: HttpAdapter,
  { container }: NestApplication,
): { readonly runOf: () => Handler | undefined; readonly configured: readonly ModuleMiddleware[] } {
  let chain: Chain | undefined;
  const configured: ModuleMiddleware[] = [];
  let type: object = {};
  // Nest finds a class among its module's middleware, and then registers the class for a path.
  for (const { middlewares } of container.getModules().values()) {
    const get = middlewares.get.bind(middlewares);
    middlewares.get = (key) => {
      type = key;
      return get(key);
    };
  }
  const createRegister = adapter.createMiddlewareFactory.bind(adapter);
  const { createMiddlewareFactory }: HttpAdapter = Object.getPrototypeOf(adapter);
  adapter.createMiddlewareFactory = async (httpMethod) => {
    const registered = type;
    const { instance } = (chain ??= createChain(adapter));
    // The adapter itself registers in the chain, so that paths match as in the application. `middieContexts` are the
    // child contexts in which the Fastify adapter also registers.
    const copy: unknown = Object.create(adapter, { instance: { value: instance }, middieContexts: { value: [] } });
    const register = await createRegister(httpMethod);
    const registerInChain: Register = await Reflect.apply(createMiddlewareFactory, copy, [httpMethod]);
    return (path, middleware) => {
      configured.push({ path, type: registered });
      register(path, middleware);
      registerInChain(path, middleware);
    };
  };
  return { runOf: () => chain?.run, configured };
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
    // The adapter of Nest 11.0 finds no middleware for a target in absolute form (RFC 9112 §3.2.2).
    const path = url.replace(/^https?:\/\/[^/?]*\/?/i, "/");
    const runFrom = (at: number, error?: Error): void => {
      const middleware = error ? undefined : chain[at];
      // The adapter strips paths from `url`, as Express does.
      request.url = middleware === undefined ? url : path;
      if (path !== url) Object.assign(request, { originalUrl: request.url });
      if (middleware === undefined) return done(error);
      middleware(request, response, (failure) => runFrom(at + 1, failure));
    };
    runFrom(0);
  };
}
