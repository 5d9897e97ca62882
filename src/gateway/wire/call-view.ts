import type { Message } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ContextValues,
  type HandlerContext,
  type StreamRequest,
  type UnaryRequest,
} from "@connectrpc/connect";
import type { Exchange } from "./exchange.ts";
import { LazyHeaders } from "./header-fields.ts";
import type { Invocation, UnaryProcedure } from "./procedure.ts";
import type { UnaryWire } from "./unary-wire.ts";

/** What a {@link CallView} is made of. */
export interface CallViewInit {
  readonly exchange: Exchange;
  readonly unary: UnaryProcedure;
  readonly wire: UnaryWire;
  readonly values: ContextValues;
  /** Milliseconds until the deadline; `undefined` without one. */
  readonly timeoutMs: number | undefined;
}

/**
 * A unary call as its interceptors and its handler see it: Connect's `UnaryRequest` and `HandlerContext`.
 *
 * Both in one object, which is half the cost of two. Everything is a property of its own, so that either can
 * be spread; header and signal are built when they are looked at.
 */
export class CallView implements HandlerContext {
  readonly stream = false;
  readonly service: UnaryRequest["service"];
  readonly method: UnaryRequest["method"];
  readonly requestMethod: string;
  readonly url: string;
  readonly header: Headers;
  readonly contextValues: ContextValues;
  message: Message | undefined;
  readonly protocolName: string;
  readonly requestHeader: Headers;
  readonly responseHeader: LazyHeaders;
  readonly responseTrailer: LazyHeaders;
  readonly values: ContextValues;
  readonly timeoutMs: () => number | undefined;
  declare readonly signal: AbortSignal;
  /** The call, for {@link callOf}: spread copies of a request have it too. */
  readonly call: Invocation;

  constructor(call: Invocation, { exchange, unary, wire, values, timeoutMs }: CallViewInit) {
    const { method } = unary;
    this.service = method.parent;
    this.method = method;
    this.requestMethod = exchange.httpMethod;
    this.url = exchange.origin + exchange.target;
    this.header = new LazyHeaders(exchange.fields);
    this.contextValues = values;
    this.message = undefined;
    this.protocolName = wire.protocol;
    this.requestHeader = this.header;
    this.responseHeader = new LazyHeaders(wire.headerFields);
    this.responseTrailer = new LazyHeaders(wire.trailerFields);
    this.values = values;
    this.timeoutMs = timeoutMs === undefined ? noTimeout : timeLeft(Date.now() + timeoutMs);
    this.call = call;
    Object.defineProperty(this, "signal", signalDescriptor);
  }

  /** The request of the call, once there is a message. */
  withMessage(message: Message): UnaryRequest {
    this.message = message;
    return this as CallView & { readonly message: Message };
  }
}

/**
 * The call that a request, as an interceptor passes it on, belongs to.
 *
 * @throws ConnectError `Internal` for a request that an interceptor made up instead of spreading its own
 */
export function callOf(request: UnaryRequest | StreamRequest): Invocation {
  const { call } = request as Partial<CallView>;
  if (call !== undefined) return call;
  throw new ConnectError("an interceptor passed on a request that is not the one it was given", Code.Internal);
}

/**
 * Why the signal of a call is aborted, as `context.signal.reason` says; `undefined` until it is.
 *
 * For a handler that asks once, when a queue has come to it for instance: a signal that somebody looks at is built, and
 * aborted when the call ends, which costs a call that had to wait about 1 µs. Any context will do; of one that an
 * interceptor has changed, it is the signal that is asked.
 */
export function abortReasonOf(context: HandlerContext): unknown {
  // What was derived from it, as a copy or as its heir, may have another signal.
  const isOriginal = context instanceof CallView && Object.getPrototypeOf(context) === CallView.prototype;
  return isOriginal ? context.call.abortReason : context.signal.reason;
}

// One descriptor for all: V8 then gives all the objects one shape.
const signalDescriptor: PropertyDescriptor & ThisType<CallView> = {
  enumerable: true,
  configurable: true,
  get() {
    return this.call.signal;
  },
};

function noTimeout(): undefined {}

function timeLeft(deadlineMs: number): () => number {
  return () => deadlineMs - Date.now();
}
