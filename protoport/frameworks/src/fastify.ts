import type { EventEmitter } from "node:events";
import type { GatewayOptions, GatewayRoute, NodeHandler } from "@protoport/gateway";
import { requireField } from "@protoport/gateway/exchange";
import { createFaultReporter, type FaultReporter, fieldFailure } from "@protoport/gateway/forward";
import { fastifyUrlsOf, type PluginPrefixes } from "./fastify-urls.ts";
import { createMount, type Mount, type MountOptions } from "./mount.ts";

/** The members that the plugin uses in a Fastify request. */
export interface FastifyRequestLike {
  readonly raw: Parameters<NodeHandler>[0];
  readonly log: { error(fields: object, message: string): void };
}

/** The members that the plugin uses in a Fastify reply. */
export interface FastifyReplyLike {
  readonly raw: Parameters<NodeHandler>[1];
  /** Whether the response has ended, or a hook has called `hijack()`. */
  readonly sent: boolean;
  getHeaders(): Readonly<Record<string, number | string | readonly string[] | undefined>>;
  callNotFound(): unknown;
  send(error?: Error): unknown;
}

/** The members that the plugin uses in a Fastify instance, in versions 4 and 5. */
export interface FastifyLike {
  readonly prefix: string;
  readonly log: FastifyRequestLike["log"] & { warn(message: string): void };
  readonly server: EventEmitter;
  /** Only Fastify 5 has this member. */
  readonly supportedMethods?: string[];
  removeAllContentTypeParsers(): unknown;
  addContentTypeParser(
    type: string,
    options: object,
    parse: (request: never, body: never, done: (error: null) => void) => void,
  ): unknown;
  addHook(name: "preClose", hook: (done: () => void) => void): unknown;
  hasRoute(route: { readonly method: "OPTIONS"; readonly url: string }): boolean;
  route(route: {
    method: HttpMethod[];
    url: string;
    exposeHeadRoute: boolean;
    schema: object;
    onSend: OnSend;
    handler(this: unknown, request: FastifyRequestLike, reply: FastifyReplyLike): void;
  }): unknown;
}

type PassPayload = (error: null, payload: unknown) => void;
type OnSend = (request: FastifyRequestLike, reply: FastifyReplyLike, payload: unknown, done: PassPayload) => void;

/** Options for {@link fastifyConnectPlugin}. Fastify itself uses `prefix`, `logLevel` and `logSerializers`. */
export interface FastifyConnectOptions extends MountOptions<FastifyRequestLike> {
  readonly prefix?: unknown;
  readonly logLevel?: unknown;
  readonly logSerializers?: unknown;
}

/** A plugin that serves some methods of a URL. */
interface Sharer {
  readonly methods: ReadonlySet<string>;
  readonly mount: Mount<FastifyRequestLike>;
}

/** The plugins of each application by URL. The URL's only OPTIONS route passes preflights to the method's plugin. */
const sharers = new WeakMap<object, Map<string, Sharer[]>>();

function sharersOf(app: FastifyLike, url: string): Sharer[] {
  const byUrl = sharers.get(app.server) ?? new Map<string, Sharer[]>();
  sharers.set(app.server, byUrl);
  const found = byUrl.get(app.prefix + url) ?? [];
  byUrl.set(app.prefix + url, found);
  return found;
}

/** The HTTP methods that Fastify 4 and 5 support. */
const fastifyMethods = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"] as const;
type HttpMethod = (typeof fastifyMethods)[number];

/**
 * A Fastify plugin that serves Connect routes: `app.register(fastifyConnectPlugin, { routes })`. The plugin is
 * encapsulated. Its content type parsers do not affect the application. The application's hooks up to `preHandler` and
 * the hook `onResponse` run for the plugin's calls. `onSend` does not run, because the gateway writes the response
 * itself. With `@fastify/cookie`, `onSend` runs before the call, without a payload. A hook that fails, responds, or sets
 * a payload or a status ends the call before its handler.
 *
 * Registers one route per path and method that the gateway serves, and `app.printRoutes()` prints these routes. The
 * application serves all other requests, including other methods on these paths.
 *
 * @throws as `createGateway` does, from `app.ready()`
 */
export async function fastifyConnectPlugin(app: FastifyLike, options: FastifyConnectOptions): Promise<void> {
  const { prefix: _prefix, logLevel: _logLevel, logSerializers: _serializers, ...own } = options;
  const prefixes = { ofFastify: app.prefix, ofGateway: own.requestPathPrefix ?? "" };
  const onFault: GatewayOptions["onFault"] = (err, what, call, errorCode) => {
    const { log } = mount.requestOf(call?.contextValues) ?? app;
    log.error({ err, errorCode, procedure: call?.procedure }, what);
  };
  const isSilent = isWithoutLogger(app.log);
  const withFaults = { ...(!isSilent && { onFault }), ...own };
  const report = createFaultReporter(withFaults.onFault);
  const mount = createMount<FastifyRequestLike>({
    ...withFaults,
    requestPathPrefix: prefixes.ofFastify + prefixes.ofGateway,
  });
  app.removeAllContentTypeParsers();
  // The gateway reads bodies itself.
  app.addContentTypeParser("*", {}, (_request, _body, done) => done(null));
  mount.followConnections(app.server);
  app.addHook("preClose", (done) => {
    mount.close();
    done();
  });
  const { supportedMethods = fastifyMethods } = app;
  const warn = (message: string): void => (isSilent ? process.emitWarning(message) : app.log.warn(message));
  for (const [url, methods] of methodsByUrl(mount.routes, prefixes, warn)) {
    const sharing = sharersOf(app, url);
    sharing.push({ methods, mount });
    // OPTIONS is skipped if the route exists, because of another plugin or @fastify/cors. `HttpMethod` lacks some
    // methods in `supportedMethods`, which Fastify 5 accepts.
    const isRegistered = (name: string): name is HttpMethod =>
      name !== "OPTIONS" || !app.hasRoute({ method: name, url: app.prefix + url });
    const route: Parameters<FastifyLike["route"]>[0] = {
      method: [...(methods.has("*") ? supportedMethods : methods)].filter(isRegistered),
      url,
      exposeHeadRoute: false,
      // The routes have no schemas that @fastify/swagger could describe.
      schema: { hide: true },
      onSend: endHooks,
      handler: (request, reply) => {
        const { method, headers } = request.raw;
        const asked = String(headers["access-control-request-method"]);
        const owner = method === "OPTIONS" ? sharing.find((each) => each.methods.has(asked)) : undefined;
        const serve = (): void => {
          copyFields(reply, report);
          (owner?.mount ?? mount).serve(request, request.raw, reply.raw, (error) => {
            if (error === undefined) reply.callNotFound();
            else reply.send(error);
          });
        };
        serveAfterHooks(reply, serve);
      },
    };
    try {
      app.route(route);
    } catch (error) {
      const served = mount.routes.filter((each) => fastifyUrlsOf(each, prefixes).includes(url));
      throw explainRefusedRoute(error, served);
    }
  }
}

/** Returns an error that names the RPCs of the routes at a URL that Fastify refuses, or else the same error. */
function explainRefusedRoute(error: unknown, served: readonly GatewayRoute[]): unknown {
  const procedures = [...new Set(served.flatMap(({ procedure = [] }) => procedure))];
  if (!(error instanceof Error) || procedures.length === 0) return error;
  const names = procedures.map((name) => name.slice(1).replace("/", ".")).join(", ");
  const isDuplicate = error.message.includes("already declared for route");
  const isUnknownMethod = "code" in error && error.code === "FST_ERR_ROUTE_METHOD_NOT_SUPPORTED";
  if (!isDuplicate && !isUnknownMethod) return error;
  // An RPC's own path, usually in use because two plugins have the service. `rest.omit` does not remove this path.
  const isOwnPath = served.every(({ template }) => template === undefined);
  const ofRule = isDuplicate ? "remove the application's route" : "call app.addHttpMethod before app.register";
  const remedy = isOwnPath
    ? "register the service in one plugin, or each plugin with another prefix, or remove the application's route"
    : `${ofRule}, or add the RPC to rest.omit`;
  return new Error(`${error.message} (for ${names}): ${remedy}`, { cause: error });
}

/** Serves the calls whose `onSend` hooks run, by reply. */
const waiting = new WeakMap<FastifyReplyLike, () => void>();

/**
 * Serves a call. With `@fastify/cookie`, first runs the `onSend` hooks as for a response without a payload, because
 * `@fastify/cookie` and `@fastify/session` set their cookies in these hooks.
 */
function serveAfterHooks(reply: FastifyReplyLike, serve: () => void): void {
  if (!("setCookie" in reply)) return serve();
  const send = reply.send.bind(reply);
  // The response to a hook's error must not serve the call.
  reply.send = (error) => {
    waiting.delete(reply);
    return send(error);
  };
  waiting.set(reply, serve);
  // Calls ignore the status of earlier hooks.
  reply.raw.statusCode = 200;
  send();
}

/** The route's own `onSend` hook, which Fastify runs last. Serves the call, unless an earlier hook has responded. */
const endHooks: OnSend = (_request, reply, payload, done) => {
  const serve = waiting.get(reply);
  if (serve === undefined) done(null, payload);
  else if (reply.sent) return;
  else if (reply.raw.headersSent) reply.raw.end();
  else if (payload !== undefined || reply.raw.statusCode !== 200) done(null, payload);
  else serve();
};

/** Adds the header fields that hooks have set on `reply` to the response. Reports those that HTTP forbids instead. */
function copyFields(reply: FastifyReplyLike, report: FaultReporter): void {
  for (const [name, value = ""] of Object.entries(reply.getHeaders())) {
    try {
      for (const line of [value].flat()) requireField(name, String(line));
      reply.raw.setHeader(name, value);
    } catch (error) {
      report(error, fieldFailure);
    }
  }
}

/** Returns whether Fastify was created without a logger. All methods of its log are then one function without effect. */
function isWithoutLogger(log: object): boolean {
  return !("level" in log) && Reflect.get(log, "error") === Reflect.get(log, "warn");
}

/** Returns the methods to register for each URL. Logs a warning for each path outside the plugin's prefix. */
function methodsByUrl(
  routes: readonly GatewayRoute[],
  prefixes: PluginPrefixes,
  warn: (message: string) => void,
): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>();
  for (const route of routes) {
    if (!route.path.startsWith(`${prefixes.ofFastify}/`)) {
      warn(`${route.path} is not served: it is outside the prefix ${prefixes.ofFastify} of fastifyConnectPlugin`);
      continue;
    }
    for (const url of fastifyUrlsOf(route, prefixes)) {
      found.set(url, new Set([...(found.get(url) ?? []), ...route.httpMethods]));
    }
  }
  return found;
}
