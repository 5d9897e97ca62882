import { create, type DescMethod } from "@bufbuild/protobuf";
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
  type UnaryRequest,
  type UnaryResponse,
} from "@connectrpc/connect";
import {
  type UniversalHandler,
  type UniversalHandlerOptions,
  validateUniversalHandlerOptions,
} from "@connectrpc/connect/protocol";
import { type ReadJsonOptions, readJson, writeJson } from "../json/index.ts";
import { callOf } from "./call-view.ts";
import { createMethodCodecs } from "./codec.ts";
import type { Procedure, UnaryProcedure } from "./procedure.ts";
import { streamGuard } from "./stream-call.ts";

/**
 * Runs the user's `routes` against Connect's own router and keeps beside each of its handlers what
 * the lean path needs: the implementation, the interceptor chain composed once, the codecs.
 */
export function createProcedures(
  routes: (router: ConnectRouter) => void,
  options: ConnectRouterOptions,
  jsonRules: (options: UniversalHandlerOptions) => ReadJsonOptions,
): readonly Procedure[] {
  const connect = createConnectRouter(guarded(options));
  const base = { ...options, ...validateUniversalHandlerOptions(options) };
  const procedures: Procedure[] = [];
  const add = (spec: MethodImplSpec, override: Partial<ConnectRouterOptions> | undefined): void => {
    const own: UniversalHandlerOptions = { ...base, ...override };
    const rules = jsonRules(own);
    const jsonOptions = { ...own.jsonOptions, textDecoder: createStrictDecoder(spec.method, rules) };
    connect.rpc(spec.method, spec.impl as MethodImpl<DescMethod>, { ...guarded(own), jsonOptions });
    const handler = connect.handlers.at(-1);
    if (handler !== undefined) procedures.push(createProcedure(spec, handler, own, rules));
  };
  const router: ConnectRouter = {
    handlers: connect.handlers,
    service(service, implementation, override) {
      const { methods } = createServiceImplSpec(service, implementation);
      for (const spec of Object.values(methods)) add(spec, override);
      return router;
    },
    rpc(method, implementation, override) {
      add(createMethodImplSpec(method, implementation), override);
      return router;
    },
  };
  routes(router);
  return procedures;
}

/** Streams run within the guard; unary calls see to their deadline themselves. */
function guarded(options: ConnectRouterOptions): ConnectRouterOptions {
  return { ...options, interceptors: [streamGuard, ...(options.interceptors ?? [])] };
}

function createProcedure(
  spec: MethodImplSpec,
  handler: UniversalHandler,
  options: UniversalHandlerOptions,
  rules: ReadJsonOptions,
): Procedure {
  const { requestPath: name } = handler;
  if (spec.kind !== "unary") return { name, handler, options, unary: undefined };
  const codecs = createMethodCodecs(spec.method, options, rules);
  return {
    name,
    handler,
    options,
    unary: { method: spec.method, codecs, invoke: composeUnary(spec, options.interceptors) },
  };
}

/**
 * Puts the strict reader before Connect's own JSON codec, which serves the streams.
 *
 * The codec takes its bytes through an exchangeable text decoder. What the strict reader has accepted is
 * written out again in the one spelling that any reader takes exactly.
 */
function createStrictDecoder({ input }: DescMethod, rules: ReadJsonOptions): Pick<TextDecoder, "decode"> {
  return { decode: (bytes) => writeJson(input, readJson(input, bytes as Uint8Array, rules)) };
}

type UnarySpec = Extract<MethodImplSpec, { kind: "unary" }>;
type AnyFn = ReturnType<Interceptor>;
type MessageInit = Awaited<ReturnType<UnarySpec["impl"]>>;

function composeUnary(spec: UnarySpec, interceptors: readonly Interceptor[]): UnaryProcedure["invoke"] {
  const { method, impl } = spec;
  const toResponse = (context: HandlerContext, message: MessageInit): UnaryResponse => ({
    stream: false,
    service: method.parent,
    method,
    header: context.responseHeader,
    trailer: context.responseTrailer,
    message: create(method.output, message),
  });
  const handle = (request: UnaryRequest): Promise<UnaryResponse> => {
    const context = callOf(request).contextFor(request);
    const message = impl(request.message, context);
    // Not an async function, which would wait for the promise of a handler with a promise of its own.
    if (!(message instanceof Promise)) return Promise.resolve(message).then((init) => toResponse(context, init));
    return message.then((init) => toResponse(context, init));
  };
  const terminal: AnyFn = (request) => {
    try {
      return handle(request as UnaryRequest);
    } catch (error) {
      return Promise.reject(error);
    }
  };
  // Composed once: Connect's own handlers wrap the chain anew for each call.
  const chain = interceptors.reduceRight((next, interceptor) => interceptor(next), terminal);
  return (call, message) => chain(call.createRequest(message)) as Promise<UnaryResponse>;
}
