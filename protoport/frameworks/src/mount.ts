import type { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { Code, ConnectError, type ContextValues, createContextKey, createContextValues } from "@connectrpc/connect";
import { createGateway, type Gateway, type GatewayOptions, type NodeHandler } from "@protoport/gateway";
import { runLater } from "@protoport/gateway/exchange";
import { integerBetween, refuseIgnoredOptions, refuseUnknownOptions, requireObject } from "@protoport/gateway/options";

/** Options for all plugins. `createGateway` options that concern a framework application are included. */
export interface MountOptions<Request extends object> extends Omit<
  GatewayOptions,
  "contextValues" | "engine" | "fallback"
> {
  /**
   * Returns a call's initial context values, in a new object for each call. A method, so that functions for the
   * framework's request type are accepted.
   */
  contextValues?(this: void, request: Request): ContextValues;
  /** Milliseconds after which a closing application aborts calls in flight. Defaults to 10,000. */
  readonly closeTimeoutMs?: number;
}

/** A gateway in a framework application. */
export interface Mount<Request extends object>
  extends Pick<Gateway, "matches" | "routes">, Pick<CallCloser, "followConnections"> {
  readonly serve: (request: Request, ...exchange: Required<Parameters<NodeHandler>>) => void;
  readonly requestOf: (contextValues: ContextValues | undefined) => Request | undefined;
  /** Aborts the signals of calls still in flight after `closeTimeoutMs`, and a second later, their responses. */
  readonly close: () => void;
}

/** The `createGateway` options that a plugin does not use, each with the reason. */
const ignoredByPlugins = {
  fallback: "the application serves the requests that match nothing",
};

/** Creates a {@link Mount}. Throws as `createGateway` does, and for options that a plugin does not use. */
export function createMount<Request extends object>(mountOptions: MountOptions<Request>): Mount<Request> {
  requireObject(mountOptions, "the plugin", "options");
  refuseIgnoredOptions(mountOptions, ignoredByPlugins, "the plugin");
  const { contextValues, closeTimeoutMs, shutdownSignal, ...options } = mountOptions;
  const closer = new CallCloser(closeTimeoutMs, shutdownSignal);
  const requests = new WeakMap<object, Request>();
  const requestKey = createContextKey<Request | undefined>(undefined);
  const gateway = createGateway({
    clientAddress: (raw) => ipOf(requests.get(raw) ?? raw),
    ...options,
    shutdownSignal: closer.signal,
    contextValues: (raw) => {
      const request = requests.get(raw);
      const values = (request && contextValues?.(request)) ?? createContextValues();
      return values.set(requestKey, request);
    },
  });
  return {
    serve: (request, raw, response, next) => {
      requests.set(raw, request);
      closer.serve(gateway.handler, raw, response, next);
    },
    matches: gateway.matches,
    routes: gateway.routes,
    followConnections: (server) => closer.followConnections(server),
    requestOf: (values) => values?.get(requestKey),
    close: () => closer.close(),
  };
}

/** Returns the client's IP address that Express, Fastify or its middleware plugin has found, by its trusted proxies. */
export function ipOf(request: object): string | undefined {
  const ip: unknown = Reflect.get(request, "ip");
  return typeof ip === "string" ? ip : undefined;
}

type MountedResponse = Parameters<NodeHandler>[1];

/** 10 s give unary calls time to complete, and end before Kubernetes kills the process after 30 seconds. */
const closeTimeoutMsDefault = 10_000;
const closeOptionNames = { closeTimeoutMs: integerBetween(0, Number.POSITIVE_INFINITY) };

/** Milliseconds in which aborted calls can send their status. A handler that ignores its signal never sends one. */
const maxStatusMs = 1_000;

/** Ends the calls of a mounted gateway when its application closes. */
export class CallCloser {
  readonly #closing = new AbortController();
  readonly #open = new Set<MountedResponse>();
  readonly #sockets = new WeakMap<object, Socket>();
  #isClosing = false;
  /** Called when no call is open. */
  #onIdle: (() => void) | undefined;
  /** Milliseconds after which calls are aborted. */
  readonly timeoutMs: number;
  /** The gateway's `shutdownSignal`. */
  readonly signal: AbortSignal;

  constructor(closeTimeoutMs: number | undefined, shutdownSignal: AbortSignal | undefined) {
    const { signal } = this.#closing;
    refuseUnknownOptions({ closeTimeoutMs }, closeOptionNames, "the plugin");
    this.timeoutMs = closeTimeoutMs ?? closeTimeoutMsDefault;
    this.signal = shutdownSignal === undefined ? signal : AbortSignal.any([shutdownSignal, signal]);
  }

  /**
   * Calls a gateway's handler, and remembers the response until it closes or the request is passed on. When the
   * application closes, node waits for kept connections until their timeout, so each closes with its response.
   */
  serve(handler: NodeHandler, ...[request, response, next]: Required<Parameters<NodeHandler>>): void {
    this.#open.add(response);
    response.once("close", () => {
      const { socket } = request;
      const isServed = this.#open.delete(response);
      if (this.#open.size === 0) this.#onIdle?.();
      if (isServed && this.#isClosing && !("stream" in request)) socket.end(() => socket.destroy());
    });
    handler(request, response, (error) => {
      this.#open.delete(response);
      next(error);
    });
  }

  /** Remembers the sockets of a server's HTTP/2 sessions, because node hides them, also when a session only waits. */
  followConnections(server: EventEmitter): void {
    let connected: Socket | undefined;
    const keep = (socket: Socket): void => {
      connected = socket;
    };
    // Node creates a socket's session while it handles one of these events, the second with TLS.
    server.prependListener("connection", keep).prependListener("secureConnection", keep);
    server.on("session", (session: object) => {
      if (connected !== undefined) this.#sockets.set(session, connected);
    });
  }

  /** Aborts calls after the timeout, and closes the connections of calls that do not end then. */
  close(): void {
    this.#isClosing = true;
    runLater(this.timeoutMs, () => {
      const sessions = [...this.#open].flatMap((response) => ("stream" in response && response.stream.session) || []);
      const timer = setTimeout(() => {
        for (const response of this.#open) ("stream" in response ? response.stream : response).destroy();
        for (const session of sessions) this.#sockets.get(session)?.destroy();
      }, maxStatusMs).unref();
      if (sessions.length === 0) this.#onIdle = () => clearTimeout(timer);
      this.#closing.abort(new ConnectError("the server is shutting down", Code.Unavailable));
      if (this.#open.size === 0) this.#onIdle?.();
    });
  }
}
