import {
  create,
  type DescMethod,
  type DescMethodUnary,
  type DescService,
  type Message,
  type Registry,
} from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import {
  Code,
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
import { validateServices } from "../descriptors/index.ts";
import { problem } from "../errors/index.ts";
import { createReachableRegistry, memoize, type ReadJsonOptions } from "../messages/json/index.ts";
import type { CallView, ViewedRequest } from "./call-view.ts";
import {
  createMethodCodecs,
  type MessageInit,
  type MethodCodecs,
  oneMessage,
  type Reply,
  type Rpc,
  type ResponseParts,
  type StreamRpc,
  type UnaryRpc,
} from "../protocols/index.ts";
import { refusePromise, refuseUnknownOptions } from "../options/index.ts";
import { refuseMisspelledHandlers, routerOptionNames } from "./router-options.ts";
import { requireOwnDescriptors } from "./own-descriptors.ts";
import { YieldedMessages } from "./yielded-messages.ts";

/** How the platform prepares RPCs. */
export interface RpcPlatform {
  /** Returns the prototype of descriptors that a program in CommonJS makes with the same copy of protobuf-es. */
  readonly commonJsPrototype?: () => unknown;
  /** Creates the codecs of an RPC. Default: those of its messages. */
  readonly createCodecs?: typeof createMethodCodecs;
  /** Returns whether the descriptors of a service were validated when they were read. Default: none were. */
  readonly isValidated?: (service: DescService) => boolean;
  /** Returns what runs a unary RPC that has no interceptors; `undefined` if that is its handler. */
  readonly runOf?: (method: DescMethodUnary) => UnaryRpc["run"] | undefined;
}

/** What a router was given for one RPC, with its options, which override those of the router. */
interface Added {
  readonly spec: MethodImplSpec;
  readonly own: RouterOptions;
}

type RouterOptions = ConnectRouterOptions & UniversalHandlerOptions;

/**
 * Runs the user's `routes` against a router that takes what Connect's does, and prepares for each RPC what its calls
 * need: the implementation, the interceptor chain composed once, the codecs. Connect's handlers are only made for
 * routes that look at them: they are most of what Connect's router costs, in time and in memory.
 *
 * @returns the RPCs, and the types that JSON may name: those of `options`, by default all that the services reach
 */
export function createRpcs(
  routes: (router: ConnectRouter) => void,
  options: ConnectRouterOptions,
  jsonRules: (options: UniversalHandlerOptions) => ReadJsonOptions,
  { commonJsPrototype, createCodecs = createMethodCodecs, isValidated = () => false, runOf }: RpcPlatform,
): { readonly rpcs: readonly Rpc[]; readonly registry: Registry } {
  const base = optionsOf(options, undefined);
  const added: Added[] = [];
  const router: ConnectRouter = {
    get handlers() {
      return handlersOf(added);
    },
    service(service, implementation, override) {
      refuseMisspelledHandlers(service, implementation);
      const own = override ? serviceOptionsOf(base, override, `router.service(${service.typeName})`) : base;
      const { methods } = createServiceImplSpec(service, implementation);
      for (const spec of Object.values(methods)) added.push({ spec, own });
      return router;
    },
    rpc(method, implementation, override) {
      added.push({
        spec: createMethodImplSpec(method, implementation),
        own: override ? serviceOptionsOf(base, override, `router.rpc(${method.parent.typeName}.${method.name})`) : base,
      });
      return router;
    },
  };
  refusePromise<unknown>(routes(router), "routes must register the services synchronously");
  const services = [...new Set(added.map(({ spec }) => spec.method.parent))];
  requireOwnDescriptors(services, options.jsonOptions?.registry, commonJsPrototype);
  validateServices(services.filter((service) => !isValidated(service)));
  const registry = options.jsonOptions?.registry ?? createReachableRegistry(services);
  const prepare = memoize((own: RouterOptions) => {
    const withTypes = { ...own, jsonOptions: { registry, ...own.jsonOptions } };
    return { withTypes, rules: jsonRules(withTypes) };
  });
  const rpcs = added.map(({ spec, own }) => {
    const { withTypes, rules } = prepare(own);
    return createRpc(spec, withTypes, createCodecs(spec.method, withTypes, rules), runOf);
  });
  return { rpcs, registry };
}

/**
 * Returns the options of a router, or of one of its RPCs, with Connect's defaults.
 *
 * @throws ConnectError for a limit that is none, and when no protocol is left
 */
function optionsOf(base: ConnectRouterOptions, override: Partial<ConnectRouterOptions> | undefined): RouterOptions {
  const own = { ...base, ...override };
  // Refuses what Connect refuses.
  createConnectRouter(own);
  return { ...own, ...validateUniversalHandlerOptions(own) };
}

/** Returns the options of a service or an RPC. Throws as {@link optionsOf} does, and TypeError for an unknown name. */
function serviceOptionsOf(
  base: ConnectRouterOptions,
  override: Partial<UniversalHandlerOptions>,
  owner: string,
): RouterOptions {
  refuseUnknownOptions(override, routerOptionNames, owner);
  return optionsOf(base, override);
}

/** Returns Connect's own handlers of these RPCs. */
function handlersOf(added: readonly Added[]): ConnectRouter["handlers"] {
  const connect = createConnectRouter();
  for (const { spec, own } of added) connect.rpc(spec.method, spec.impl as MethodImpl<DescMethod>, own);
  return connect.handlers;
}

function createRpc(
  spec: MethodImplSpec,
  options: RouterOptions,
  codecs: MethodCodecs,
  runOf: RpcPlatform["runOf"],
): Rpc {
  const { parent, name, idempotency } = spec.method;
  const { connect = true } = options;
  const common = {
    name: `/${parent.typeName}/${name}`,
    // Only Connect has calls by GET, of RPCs that promise to change nothing.
    httpMethods: connect && idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS ? postAndGet : post,
    options,
    codecs,
  };
  if (spec.kind === "unary") {
    const { method } = spec;
    const run = options.interceptors.length > 0 ? undefined : (runOf?.(method) ?? runHandler(spec));
    return { ...common, kind: "unary", method, run: run ?? runInterceptors(spec, options.interceptors) };
  }
  return { ...common, kind: "stream", method: spec.method, invoke: composeStream(spec, options.interceptors) };
}

const post = ["POST"];
const postAndGet = ["GET", "POST"];

type UnarySpec = Extract<MethodImplSpec, { kind: "unary" }>;
type StreamSpec = Exclude<MethodImplSpec, { kind: "unary" }>;
type AnyFn = ReturnType<Interceptor>;

/** Composes the interceptors and the handler of an RPC, once; Connect's own handlers wrap the chain anew for each call. */
function runInterceptors({ method, impl }: UnarySpec, interceptors: readonly Interceptor[]): UnaryRpc["run"] {
  const terminal = (request: UnaryRequest): Promise<UnaryResponse> => {
    try {
      const answer = impl(request.message, contextOf(request));
      // Not an async function, which would add a promise of its own to that of the handler.
      const answered = answer instanceof Promise ? answer : Promise.resolve(answer);
      return answered.then((init) => toUnaryResponse((request as UnaryRequest & CallView).call.view, method, init));
    } catch (error) {
      return Promise.reject(error);
    }
  };
  const chain = interceptors.reduceRight((next, interceptor) => interceptor(next), terminal as AnyFn);
  return (call, reply) => {
    // An untyped interceptor may return anything.
    Promise.resolve(chain(call)).then(
      (response) => reply.take(response as UnaryResponse),
      (error: unknown) => reply.takeError(error),
    );
  };
}

/** Runs a handler without interceptors, which needs no promise of a response. */
function runHandler({ method, impl }: Pick<UnarySpec, "method" | "impl">): UnaryRpc["run"] {
  return (call, reply) => {
    const { ended } = requestOf(call);
    // The server shuts down: a handler that has not begun need not.
    if (ended !== undefined) throw ended;
    // An untyped handler may return anything.
    Promise.resolve(impl(call.message, call)).then(
      (init) => respond(call, method, init, reply),
      (error: unknown) => reply.takeError(error),
    );
  };
}

function respond(view: HandlerContext, method: DescMethodUnary, init: MessageInit, reply: Reply): void {
  let response: ResponseParts;
  try {
    response = toUnaryResponse(view, method, init);
  } catch (error) {
    return reply.takeError(error);
  }
  reply.take(response);
}

/** Returns the response for a handler's message, with the header and trailer that the handler has set. */
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
    const yielded = iterableOf(spec, await outputOf(request as StreamRequest, context));
    const message = new YieldedMessages(method.output, yielded);
    const { responseHeader: header, responseTrailer: trailer } = context;
    return { stream: true, service: method.parent, method, header, trailer, message };
  };
  return interceptors.reduceRight((next, interceptor) => interceptor(next), terminal) as StreamRpc["invoke"];
}

/** Returns what a streaming handler has returned. @throws TypeError if that is not an asynchronous iterable */
function iterableOf({ method }: StreamSpec, returned: unknown): AsyncIterable<MessageInit> {
  if (isAsyncIterable(returned)) return returned;
  const type = Array.isArray(returned) ? "an array" : returned === null ? "null" : typeof returned;
  throw new TypeError(
    `the handler of /${method.parent.typeName}/${method.name} must return an async iterable, got ${type}; ` +
      "declare it as an async generator function: async *",
  );
}

function isAsyncIterable(value: unknown): value is AsyncIterable<MessageInit> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}

/**
 * Returns the handler's context for a request as the last interceptor passes it on, with what interceptors replaced.
 *
 * @throws ConnectError `Internal` for a request that an interceptor built instead of spreading the one it was given; or
 * the call's abort reason, when nobody waits for its answer any more
 */
function contextOf(request: UnaryRequest | StreamRequest): HandlerContext {
  const { call } = request as Partial<CallView>;
  if (call === undefined) {
    throw problem("ERR_HANDLER_FAILED", "an interceptor must pass on the request that it received, or a spread copy of it");
  }
  if (call.request.ended !== undefined) throw call.request.ended;
  const { view } = call;
  if ((request as unknown) === view) return view;
  const { header, signal, contextValues } = request;
  if (signal.aborted) throw signal.reason;
  return Object.assign({}, view, { requestHeader: header, signal, values: contextValues });
}

/** Returns the request of a handler's call, whatever interceptors have put in the place of its parts. */
export function requestOf(context: HandlerContext): ViewedRequest {
  const { call } = context as Partial<CallView>;
  if (call === undefined) throw new TypeError("a handler was called with the context of another server");
  return call.request;
}

async function onlyMessage(messages: AsyncIterable<Message>): Promise<Message> {
  for await (const message of messages) return message;
  // gRPC, "Status codes": a call with too few messages is unimplemented.
  throw problem("ERR_PROTOCOL", "the message is missing", { code: Code.Unimplemented });
}
