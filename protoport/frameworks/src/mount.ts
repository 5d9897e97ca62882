import { type ContextValues, createContextKey, createContextValues } from "@connectrpc/connect";
import { createGateway, type Gateway, type GatewayOptions, type NodeHandler } from "@protoport/gateway";
import { refuseIgnoredOptions, requireObject } from "@protoport/gateway/options";
import { CallCloser } from "./call-closer.ts";

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
