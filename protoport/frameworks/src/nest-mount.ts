/** Mounts gateways in Nest applications on Express and Fastify. */
import type { EventEmitter } from "node:events";
import type { Gateway, NodeHandler } from "@protoport/gateway";
import type { CallCloser } from "./call-closer.ts";
import { applicationOf } from "./nest-enhancers.ts";

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
export interface MountedGateway extends Pick<Gateway, "matches">, Pick<CallCloser, "followConnections"> {
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
 * first, for the same paths as in the application.
 *
 * @throws TypeError if `app` is not the application that `NestFactory.create` returns
 */
export function mountInNest(app: MountableApplication, gateway: MountedGateway): void {
  applicationOf(app);
  const adapter: HttpAdapter = Reflect.get(app, "getHttpAdapter").call(app);
  gateway.followConnections(adapter.getHttpServer());
  const runOf = followModuleMiddleware(adapter);
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
}

/** Returns a function that returns what runs the middleware of modules, or `undefined` if modules configure none. */
function followModuleMiddleware(adapter: HttpAdapter): () => Handler | undefined {
  let chain: Chain | undefined;
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
      register(path, middleware);
      registerInChain(path, middleware);
    };
  };
  return () => chain?.run;
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
