import {
  create,
  type DescMethod,
  type DescMethodStreaming,
  type DescMethodUnary,
  type DescService,
  type Registry,
} from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import {
  type ConnectRouter,
  type ConnectRouterOptions,
  createConnectRouter,
  createMethodImplSpec,
  createServiceImplSpec,
  type HandlerContext,
  type Interceptor,
  type MethodImpl,
  type MethodImplSpec,
  type StreamRequest,
  type UnaryRequest,
  type UnaryResponse,
} from "@connectrpc/connect";
import { type UniversalHandlerOptions, validateUniversalHandlerOptions } from "@connectrpc/connect/protocol";
import {
  type HiddenParts,
  type PartlyVisible,
  validateServices,
  type VisibilityOptions,
  problem,
  createReachableRegistry,
  ignoredJsonOptions,
  memoize,
  type ReadJsonOptions,
} from "@plantstore/protobuf";
import type { CallView } from "./call-view.ts";
import type { InterceptedCall } from "./forwarded-response.ts";
import {
  createMethodCodecs,
  Forwarding,
  type MessageCheck,
  type MessageInit,
  type MethodCodecs,
  oneMessage,
  procedureOf,
  type Reply,
  type Rpc,
  type ResponseParts,
  type StreamRpc,
  type UnaryRpc,
} from "@plantstore/protocols";
import { refuseIgnoredOptions, refusePromise, refuseUnknownOptions } from "@plantstore/http";
import { forwarderOf } from "./register-forwarder.ts";
import { refuseMisspelledHandlers, routerOptionNames } from "./router-options.ts";
import { requireOwnDescriptors } from "./own-descriptors.ts";
import { checkRequests, type Validation } from "./validation.ts";
import { ConvertedMessages, onlyMessage } from "./stream-messages.ts";
import { VisibleRpcs } from "./visible-rpcs.ts";

/** The platform-dependent functions for preparing RPCs. */
export interface RpcPlatform {
  /** Returns the prototype of the descriptors that a CommonJS program creates with the same copy of protobuf-es. */
  readonly commonJsPrototype?: () => unknown;
  /** Creates an RPC's codecs. The default codecs decode and encode the RPC's messages. */
  readonly createCodecs?: typeof createMethodCodecs;
  /** Returns whether a service's descriptors were validated when the descriptors were read. Defaults to `false`. */
  readonly isValidated?: (service: DescService) => boolean;
  /**
   * The elements of validated services and of `jsonOptions.registry` that callers can see. By default, the option
   * `visibility` hides elements of the registry.
   */
  readonly definitions?: readonly PartlyVisible[];
}

/** An RPC registered with a router, and the RPC's options, which override the router's options. */
interface RegisteredRpc {
  readonly spec: MethodImplSpec;
  readonly serviceOptions: RouterOptions;
}

type RouterOptions = ConnectRouterOptions & UniversalHandlerOptions;

/** The restrictions on the messages that callers can send, and on the elements that callers can see. */
export interface RpcRestrictions {
  readonly validation?: Validation | undefined;
  readonly visibility?: VisibilityOptions | undefined;
}

/** A gateway's RPCs. */
interface PreparedRpcs {
  readonly rpcs: readonly Rpc[];
  /** The types that JSON may name, which are by default all types that are reachable from the services. */
  readonly registry: Registry;
  /** Removes hidden fields and values from error details. `undefined` if messages have no hidden fields or values. */
  readonly hidden: HiddenParts | undefined;
  /** The full names of the hidden services and RPCs. */
  readonly hiddenRpcs: ReadonlySet<string>;
  /** All labels in visibility rules. */
  readonly visibilityLabels: ReadonlySet<string>;
}

/**
 * Runs the user's `routes` with a router that accepts the same arguments as Connect's router. Yields after each RPC.
 *
 * Connect's own handlers take most of the time and memory of Connect's router, so they are created only if `routes`
 * reads `router.handlers`.
 */
export function* createRpcs(
  routes: (router: ConnectRouter) => void,
  options: ConnectRouterOptions,
  jsonRules: (options: UniversalHandlerOptions) => ReadJsonOptions,
  { commonJsPrototype, createCodecs = createMethodCodecs, isValidated = () => false, definitions }: RpcPlatform,
  { validation, visibility }: RpcRestrictions = {},
): Generator<void, PreparedRpcs> {
  const registered = registerRpcs(routes, options);
  const services = [...new Set(registered.map(({ spec }) => spec.method.parent))];
  requireOwnDescriptors(services, options.jsonOptions?.registry, commonJsPrototype);
  const unvalidated = services.filter((service) => !isValidated(service));
  validateServices(unvalidated);
  const visibleRegistry = definitions && options.jsonOptions?.registry;
  const registries = new Set(registered.flatMap(({ serviceOptions }) => serviceOptions.jsonOptions?.registry ?? []));
  if (visibleRegistry !== undefined) registries.delete(visibleRegistry);
  const visible =
    visibility && new VisibleRpcs(unvalidated, registries, definitions, visibility, options.binaryOptions);
  const served = registered.flatMap(({ spec, serviceOptions }) => {
    const method = visible === undefined ? spec.method : visible.partOf(spec.method);
    return method === undefined ? [] : [{ spec, method, serviceOptions }];
  });
  const visibleServices = new Set(served.map(({ method }) => method.parent));
  const visibleTypes = memoize((all: Registry) => visible?.registryOf(all) ?? all);
  const reachableTypes = memoize(createReachableRegistry);
  const ownRegistry = options.jsonOptions?.registry;
  const registry = ownRegistry === undefined ? reachableTypes(visibleServices) : visibleTypes(ownRegistry);
  const checkOf = validation?.prepare([...visibleServices], reachableTypes(visibleServices));
  const prepare = memoize((own: RouterOptions) => {
    const all = own.jsonOptions?.registry;
    const withTypes = {
      ...own,
      jsonOptions: { ...own.jsonOptions, registry: all === undefined ? registry : visibleTypes(all) },
    };
    return { withTypes, rules: jsonRules(withTypes) };
  });
  const rpcs: Rpc[] = [];
  for (const { spec, method, serviceOptions: own } of served) {
    const { withTypes, rules } = prepare(own);
    const codecs = createCodecs(method, withTypes, rules);
    const check = checkOf?.(method.input);
    const convert = visible?.converterOf(method, spec.method, own.binaryOptions);
    const interceptors = convert === undefined ? own.interceptors : [convert, ...own.interceptors];
    const rpc = createRpc(
      check === undefined ? spec : checkRequests(spec, check),
      method,
      { ...withTypes, interceptors },
      codecs,
    );
    rpcs.push({ ...rpc, forward: createForwarding(spec, interceptors, check) });
    yield;
  }
  const { hidden, hiddenRpcs = none, labels: visibilityLabels = none } = visible ?? {};
  return { rpcs, registry, hidden, hiddenRpcs, visibilityLabels };
}

const none: ReadonlySet<string> = new Set();

/** Runs the user's `routes`. Throws errors of {@link optionsOf}, or TypeError for a misspelled handler or a promise. */
function registerRpcs(
  routes: (router: ConnectRouter) => void,
  options: ConnectRouterOptions,
): readonly RegisteredRpc[] {
  const base = optionsOf(options, undefined);
  const registered: RegisteredRpc[] = [];
  const router: ConnectRouter = {
    get handlers() {
      return handlersOf(registered);
    },
    service(service, implementation, override) {
      refuseMisspelledHandlers(service, implementation);
      const serviceOptions = override ? serviceOptionsOf(base, override, `router.service(${service.typeName})`) : base;
      const { methods } = createServiceImplSpec(service, implementation);
      for (const spec of Object.values(methods)) registered.push({ spec, serviceOptions });
      return router;
    },
    rpc(method, implementation, override) {
      registered.push({
        spec: createMethodImplSpec(method, implementation),
        serviceOptions: override
          ? serviceOptionsOf(base, override, `router.rpc(${method.parent.typeName}.${method.name})`)
          : base,
      });
      return router;
    },
  };
  refusePromise<unknown>(routes(router), "routes must register the services synchronously");
  return registered;
}

/**
 * Returns the options for a router or for a router's RPC, with Connect's defaults.
 *
 * @throws ConnectError for an invalid limit, or if all protocols are disabled; TypeError for {@link ignoredJsonOptions}
 */
function optionsOf(base: ConnectRouterOptions, override: Partial<ConnectRouterOptions> | undefined): RouterOptions {
  const mergedOptions = { ...base, ...override };
  refuseIgnoredOptions(mergedOptions.jsonOptions ?? {}, ignoredJsonOptions, "jsonOptions");
  // `createConnectRouter` is called only to check the options, and throws Connect's errors.
  createConnectRouter(mergedOptions);
  return { ...mergedOptions, ...validateUniversalHandlerOptions(mergedOptions) };
}

/** Returns the options for a service or an RPC. Throws errors of {@link optionsOf}, or TypeError for unknown names. */
function serviceOptionsOf(
  base: ConnectRouterOptions,
  override: Partial<UniversalHandlerOptions>,
  owner: string,
): RouterOptions {
  refuseUnknownOptions(override, routerOptionNames, owner);
  return optionsOf(base, override);
}

function handlersOf(registered: readonly RegisteredRpc[]): ConnectRouter["handlers"] {
  const connect = createConnectRouter();
  for (const { spec, serviceOptions: own } of registered)
    connect.rpc(spec.method, spec.impl as MethodImpl<DescMethod>, own);
  return connect.handlers;
}

/** @param visible - the RPC's descriptor without hidden elements */
function createRpc(spec: MethodImplSpec, visible: DescMethod, options: RouterOptions, codecs: MethodCodecs): Rpc {
  const { idempotency } = spec.method;
  const { connect = true } = options;
  const common = {
    name: procedureOf(spec.method),
    // Only the Connect protocol accepts GET at an RPC's path, for RPCs without side effects.
    httpMethods: connect && idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS ? postAndGet : post,
    options,
    codecs,
    registered: spec.method,
  };
  if (spec.kind === "unary") {
    const method = visible as DescMethodUnary;
    const { interceptors } = options;
    const run = interceptors.length === 0 ? withoutInterceptors(spec) : withInterceptors(spec, interceptors);
    return { ...common, kind: "unary", method, run };
  }
  const method = visible as DescMethodStreaming;
  return { ...common, kind: "stream", method, invoke: composeStream(spec, options.interceptors) };
}

/** Returns the forwarding for an RPC's calls, or `undefined` if a handler handles the calls. */
function createForwarding(
  { impl }: MethodImplSpec,
  interceptors: readonly Interceptor[],
  check: MessageCheck | undefined,
): Forwarding | undefined {
  const forwarder = forwarderOf(impl);
  if (forwarder === undefined || interceptors.length === 0)
    return forwarder && new Forwarding(forwarder, check, undefined);
  const terminal: AnyFn = (request) => {
    try {
      const context = contextOf(request);
      return (request as typeof request & { readonly call: InterceptedCall }).call.forward(request, context);
    } catch (error) {
      return Promise.reject(error);
    }
  };
  const intercept = interceptors.reduceRight((next, interceptor) => interceptor(next), terminal);
  return new Forwarding(forwarder, check, intercept);
}

const post = ["POST"];
const postAndGet = ["GET", "POST"];

type UnarySpec = Extract<MethodImplSpec, { kind: "unary" }>;
type StreamSpec = Exclude<MethodImplSpec, { kind: "unary" }>;
type AnyFn = ReturnType<Interceptor>;

/** Composes an RPC's interceptors and handler once. Connect's own handlers compose interceptors for every call. */
function withInterceptors({ method, impl }: UnarySpec, interceptors: readonly Interceptor[]): UnaryRpc["run"] {
  const terminal = (request: UnaryRequest): Promise<UnaryResponse> => {
    try {
      const returned = impl(request.message, contextOf(request));
      // An async function would create another promise in addition to the handler's promise.
      const promise = returned instanceof Promise ? returned : Promise.resolve(returned);
      return promise.then((init) => toUnaryResponse((request as UnaryRequest & CallView).call.view, method, init));
    } catch (error) {
      return Promise.reject(error);
    }
  };
  const chain = interceptors.reduceRight((next, interceptor) => interceptor(next), terminal as AnyFn);
  return (call, reply) => {
    // An interceptor in JavaScript may return any value.
    Promise.resolve(chain(call)).then(
      (response) => reply.resolve(response as UnaryResponse),
      (error: unknown) => reply.reject(error),
    );
  };
}

/** Returns a function that calls the handler directly. A direct call avoids a promise for the response. */
function withoutInterceptors({ method, impl }: Pick<UnarySpec, "method" | "impl">): UnaryRpc["run"] {
  return (call, reply) => {
    const { abortReason } = (call as UnaryRequest & CallView).call.request;
    // A shutdown has aborted the call, so the handler is not called.
    if (abortReason !== undefined) throw abortReason;
    // A handler in JavaScript may return any value.
    Promise.resolve(impl(call.message, call)).then(
      (init) => respond(call, method, init, reply),
      (error: unknown) => reply.reject(error),
    );
  };
}

function respond(view: HandlerContext, method: DescMethodUnary, init: MessageInit, reply: Reply): void {
  let response: ResponseParts;
  try {
    response = toUnaryResponse(view, method, init);
  } catch (error) {
    return reply.reject(error);
  }
  reply.resolve(response);
}

function toUnaryResponse(view: HandlerContext, method: DescMethodUnary, init: MessageInit): UnaryResponse {
  const { responseHeader: header, responseTrailer: trailer } = view;
  return { stream: false, service: method.parent, method, header, trailer, message: create(method.output, init) };
}

function composeStream(spec: StreamSpec, interceptors: readonly Interceptor[]): StreamRpc["invoke"] {
  const { method } = spec;
  const outputOf = async (request: StreamRequest, context: HandlerContext): Promise<AsyncIterable<MessageInit>> => {
    switch (spec.kind) {
      case "server_streaming":
        return spec.impl(await onlyMessage(request.message), context);
      case "client_streaming":
        return oneMessage(await spec.impl(request.message, context));
      case "bidi_streaming":
        return spec.impl(request.message, context);
    }
  };
  const terminal: AnyFn = async (request) => {
    const context = contextOf(request);
    const outputMessages = iterableOf(spec, await outputOf(request as StreamRequest, context));
    const message = new ConvertedMessages(outputMessages, (init) => create(method.output, init));
    const { responseHeader: header, responseTrailer: trailer } = context;
    return { stream: true, service: method.parent, method, header, trailer, message };
  };
  return interceptors.reduceRight((next, interceptor) => interceptor(next), terminal) as StreamRpc["invoke"];
}

/** Returns a streaming handler's result. @throws TypeError if the result is not an async iterable */
function iterableOf({ method }: StreamSpec, returned: unknown): AsyncIterable<MessageInit> {
  if (isAsyncIterable(returned)) return returned;
  const type = Array.isArray(returned) ? "an array" : returned === null ? "null" : typeof returned;
  throw new TypeError(
    `the handler of ${procedureOf(method)} must return an async iterable, got ${type}; ` +
      "declare it as an async generator function: async *",
  );
}

function isAsyncIterable(value: unknown): value is AsyncIterable<MessageInit> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}

/**
 * Returns the handler's context for the last interceptor's request, including the members that interceptors replaced.
 *
 * @throws ConnectError `Internal` if an interceptor created a request instead of spreading the received request, or the
 * call's abort reason if the call has ended
 */
function contextOf(request: UnaryRequest | StreamRequest): HandlerContext {
  const { call } = request as Partial<CallView>;
  if (call === undefined) {
    throw problem(
      "ERR_HANDLER_FAILED",
      "an interceptor must pass on the request that it received, or a spread copy of it",
    );
  }
  if (call.request.abortReason !== undefined) throw call.request.abortReason;
  const { view } = call;
  if ((request as unknown) === view) return view;
  const { header, signal, contextValues } = request;
  if (signal.aborted) throw signal.reason;
  return Object.assign({}, view, { requestHeader: header, signal, values: contextValues });
}
