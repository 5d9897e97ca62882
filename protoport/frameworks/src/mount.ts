import { Code, ConnectError, type ContextValues, createContextKey, createContextValues } from "@connectrpc/connect";
import { createGateway, type GatewayOptions, type GatewayRoute, type NodeHandler } from "@protoport/gateway";
import { refuseIgnoredOptions, requireObject } from "@protoport/gateway/options";
import { runLater } from "@protoport/gateway/exchange";

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

/** 10 s give unary calls time to complete, and end before Kubernetes kills the process after 30 seconds. */
const closeTimeoutMsDefault = 10_000;

/** A gateway in a framework application. */
export interface Mount<Request extends object> {
  readonly serve: (request: Request, ...exchange: Parameters<NodeHandler>) => void;
  /** The paths that the gateway serves. */
  readonly routes: readonly GatewayRoute[];
  readonly requestOf: (contextValues: ContextValues | undefined) => Request | undefined;
  /** Aborts the signals of calls that are still in flight after `closeTimeoutMs`. */
  readonly close: () => void;
}

/** The `createGateway` options that a plugin does not use, each with the reason. */
const ignoredByPlugins = {
  engine: "the application has the HTTP server",
  fallback: "the application serves the requests that match nothing",
};

/** Creates a {@link Mount}. Throws as `createGateway` does, and for options that a plugin does not use. */
export function createMount<Request extends object>(mountOptions: MountOptions<Request>): Mount<Request> {
  requireObject(mountOptions, "the plugin", "options");
  refuseIgnoredOptions(mountOptions, ignoredByPlugins, "the plugin");
  const { contextValues, closeTimeoutMs = closeTimeoutMsDefault, shutdownSignal, ...options } = mountOptions;
  const closing = new AbortController();
  const requests = new WeakMap<object, Request>();
  const requestKey = createContextKey<Request | undefined>(undefined);
  const gateway = createGateway({
    ...options,
    shutdownSignal: shutdownSignal === undefined ? closing.signal : AbortSignal.any([shutdownSignal, closing.signal]),
    contextValues: (raw) => {
      const request = requests.get(raw);
      const values = (request && contextValues?.(request)) ?? createContextValues();
      return values.set(requestKey, request);
    },
  });
  return {
    serve: (request, raw, response, next) => {
      requests.set(raw, request);
      gateway.handler(raw, response, next);
    },
    routes: gateway.routes,
    requestOf: (values) => values?.get(requestKey),
    close: () =>
      runLater(closeTimeoutMs, () => closing.abort(new ConnectError("the server is shutting down", Code.Unavailable))),
  };
}
