import type { NodeHandler } from "@plantstore/gateway";
import { createMount, type MountOptions } from "./mount.ts";

/** The members of a Fastify request that the plugin uses. */
export interface FastifyRequestLike {
  readonly raw: Parameters<NodeHandler>[0];
  readonly log: { error(fields: object, message: string): void };
}

/** The members of a Fastify reply that the plugin uses. */
export interface FastifyReplyLike {
  readonly raw: Parameters<NodeHandler>[1];
  getHeaders(): Readonly<Record<string, number | string | readonly string[] | undefined>>;
  callNotFound(): unknown;
  send(error: Error): unknown;
}

/** The members of a Fastify instance that the plugin uses, in versions 4 and 5. */
export interface FastifyLike extends Pick<FastifyRequestLike, "log"> {
  readonly prefix: string;
  /** Only in version 5. */
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
    handler(this: unknown, request: FastifyRequestLike, reply: FastifyReplyLike): void;
  }): unknown;
}

/** Options of {@link fastifyConnectPlugin}; Fastify itself uses the last three. */
export interface FastifyConnectOptions extends MountOptions<FastifyRequestLike> {
  readonly prefix?: unknown;
  readonly logLevel?: unknown;
  readonly logSerializers?: unknown;
}

/** The methods of both versions. */
const commonMethods = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"] as const;
type HttpMethod = (typeof commonMethods)[number];

/**
 * A Fastify plugin that serves the RPCs of Connect routes: `app.register(fastifyConnectPlugin, { routes })`. It is
 * encapsulated: its content type parsers do not affect the application. For its calls, hooks of the application up to
 * `preHandler` run, and `onResponse`; `onSend` does not, because the gateway writes the response itself. Requests that
 * are not for an RPC get the application's response for unknown routes.
 *
 * @throws as `createGateway` does, from `app.ready()`
 */
export async function fastifyConnectPlugin(app: FastifyLike, options: FastifyConnectOptions): Promise<void> {
  const { prefix: _prefix, logLevel: _logLevel, logSerializers: _serializers, ...own } = options;
  const mount = createMount<FastifyRequestLike>({
    onFault: (err, what, call, errorCode) => {
      const { log } = mount.requestOf(call?.contextValues) ?? app;
      log.error({ err, errorCode, procedure: call?.procedure }, what);
    },
    ...own,
    requestPathPrefix: `${app.prefix}${own.requestPathPrefix ?? ""}`,
  });
  app.removeAllContentTypeParsers();
  // The gateway reads bodies itself.
  app.addContentTypeParser("*", {}, (_request, _body, done) => done(null));
  app.addHook("preClose", (done) => {
    mount.close();
    done();
  });
  // @fastify/cors has a route for all OPTIONS requests.
  const isTaken = app.hasRoute({ method: "OPTIONS", url: `${app.prefix}/*` });
  // Version 5 accepts all its methods here, which may be more than its type has.
  const isServed = (name: string): name is HttpMethod => name !== "OPTIONS" || !isTaken;
  app.route({
    method: (app.supportedMethods ?? [...commonMethods]).filter(isServed),
    url: "/*",
    exposeHeadRoute: false,
    handler: (request, reply) => {
      // The gateway sends the fields that hooks have set on `reply` too.
      for (const [name, value = ""] of Object.entries(reply.getHeaders())) reply.raw.setHeader(name, value);
      mount.serve(request, request.raw, reply.raw, (error) => {
        if (error === undefined) reply.callNotFound();
        else reply.send(error);
      });
    },
  });
}
