import { create, type DescMethodUnary, type Message } from "@bufbuild/protobuf";
import type {
  HandlerContext,
  Interceptor,
  MethodImplSpec,
  StreamRequest,
  StreamResponse,
  UnaryRequest,
  UnaryResponse,
} from "@connectrpc/connect";
import { problem } from "../protobuf/index.ts";
import {
  type Callee,
  type MessageInit,
  type MethodCodecs,
  oneMessage,
  procedureOf,
  type Reply,
  type ResponseParts,
  takeMessages,
} from "../protocols/index.ts";
import type { Call } from "./call.ts";
import type { CallView } from "./call-view.ts";
import { ConvertedMessages, isAsyncIterable, onlyMessage } from "./stream-messages.ts";

type UnarySpec = Extract<MethodImplSpec, { kind: "unary" }>;
type StreamSpec = Exclude<MethodImplSpec, { kind: "unary" }>;
type AnyFn = ReturnType<Interceptor>;

/** Calls an RPC's handler, with the RPC's interceptors. */
export class HandlerCallee implements Callee {
  readonly wants = "messages";
  readonly sendsParts = false;
  readonly memory = "own";
  readonly take: Callee["take"];
  readonly #run: (view: CallView, reply: Reply) => void;
  readonly #invoke: StreamInvoke;

  constructor(spec: MethodImplSpec, codecs: MethodCodecs, interceptors: readonly Interceptor[]) {
    this.take = takeMessages(codecs);
    const isUnary = spec.kind === "unary";
    const runUnary = isUnary ? createRun(spec, interceptors) : undefined;
    this.#run = runUnary ?? refuseKind;
    this.#invoke = isUnary ? refuseKind : composeStream(spec, interceptors);
  }

  unary({ view }: Call, message: Message, reply: Reply): void {
    view.message = message;
    this.#run(view, reply);
  }

  stream({ view }: Call, messages: Message | AsyncIterable<Message>, reply: Reply): void {
    view.message = isAsyncIterable<Message>(messages) ? messages : oneMessage(messages);
    const run = async (): Promise<void> => {
      const response = await this.#invoke(view as CallView & StreamRequest);
      reply.resolveAll(response.message, response);
    };
    run().catch((error: unknown) => reply.reject(error));
  }

  decode(): never {
    throw new TypeError("a handler returns no envelopes");
  }
}

function refuseKind(): never {
  throw new TypeError("a unary RPC was called as a stream, or a stream as a unary RPC");
}

type StreamInvoke = (request: StreamRequest) => Promise<StreamResponse>;

function createRun(spec: UnarySpec, interceptors: readonly Interceptor[]): (view: CallView, reply: Reply) => void {
  return interceptors.length === 0 ? withoutInterceptors(spec) : withInterceptors(spec, interceptors);
}

/** Composes an RPC's interceptors and handler once. Connect's own handlers compose interceptors for every call. */
function withInterceptors(
  { method, impl }: UnarySpec,
  interceptors: readonly Interceptor[],
): (view: CallView, reply: Reply) => void {
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
  return (view, reply) => {
    // An interceptor in JavaScript may return any value.
    Promise.resolve(chain(view as CallView & UnaryRequest)).then(
      (response) => reply.resolve(response as UnaryResponse),
      (error: unknown) => reply.reject(error),
    );
  };
}

/** Returns a function that calls the handler directly. A direct call avoids a promise for the response. */
function withoutInterceptors({ method, impl }: UnarySpec): (view: CallView, reply: Reply) => void {
  return (view, reply) => {
    const { abortReason } = view.call.request;
    // A shutdown has aborted the call, so the handler is not called.
    if (abortReason !== undefined) throw abortReason;
    // A handler in JavaScript may return any value.
    Promise.resolve(impl(view.message as Message, view)).then(
      (init) => respond(view, method, init, reply),
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

function composeStream(spec: StreamSpec, interceptors: readonly Interceptor[]): StreamInvoke {
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
  return interceptors.reduceRight((next, interceptor) => interceptor(next), terminal) as StreamInvoke;
}

/** Returns a streaming handler's result. @throws TypeError if the result is not an async iterable */
function iterableOf({ method }: StreamSpec, returned: unknown): AsyncIterable<MessageInit> {
  if (typeof returned === "object" && returned !== null && isAsyncIterable<MessageInit>(returned)) return returned;
  const type = Array.isArray(returned) ? "an array" : returned === null ? "null" : typeof returned;
  throw new TypeError(
    `the handler of ${procedureOf(method)} must return an async iterable, got ${type}; ` +
      "declare it as an async generator function: async *",
  );
}

/**
 * Returns the handler's context for the last interceptor's request, including the members that interceptors replaced.
 *
 * @throws ConnectError `Internal` if an interceptor created a request instead of spreading the received request, or the
 * call's abort reason if the call has ended
 */
export function contextOf(request: UnaryRequest | StreamRequest): HandlerContext {
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
