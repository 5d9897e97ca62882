import type { Message } from "@bufbuild/protobuf";
import type { ContextValues, HandlerContext } from "@connectrpc/connect";
import type { Exchange } from "../carriers/index.ts";
import type { CallProtocol, LazyHeaders, Procedure } from "../protocols/index.ts";

/** The call that a view shows. */
export interface ViewedCall {
  readonly view: CallView;
  /** Aborts when the call ends, however it ends. */
  readonly signal: AbortSignal;
  /** What it ended with; `undefined` while it runs. */
  readonly ended: unknown;
}

/** Parts of a call that its view shows. */
export interface CallViewInit {
  readonly exchange: Exchange;
  readonly procedure: Procedure;
  readonly protocol: CallProtocol;
  readonly values: ContextValues;
  /** Milliseconds until the deadline; `undefined` without one. */
  readonly timeoutMs: number | undefined;
}

/**
 * A call as its interceptors and its handler see it: Connect's `UnaryRequest` or `StreamRequest`, and `HandlerContext`.
 *
 * Both in one object, which costs half as much as two. Every member is an own property, so that both can be spread;
 * header and signal are built when they are first used.
 */
export class CallView implements HandlerContext {
  readonly stream: boolean;
  readonly service: HandlerContext["service"];
  readonly method: HandlerContext["method"];
  readonly requestMethod: string;
  readonly url: string;
  readonly header: Headers;
  readonly contextValues: ContextValues;
  /** The message that the client sent, or the stream of them; before it is read, a message without a type. */
  message: Message | AsyncIterable<Message> = unread;
  readonly protocolName: string;
  readonly requestHeader: Headers;
  readonly responseHeader: LazyHeaders;
  readonly responseTrailer: LazyHeaders;
  readonly values: ContextValues;
  readonly timeoutMs: () => number | undefined;
  declare readonly signal: AbortSignal;
  /** The call itself. An own property, so that spread copies of a request have it too. */
  readonly call: ViewedCall;

  constructor(call: ViewedCall, { exchange, procedure, protocol, values, timeoutMs }: CallViewInit) {
    const { method } = procedure;
    this.stream = procedure.kind === "stream";
    this.service = method.parent;
    this.method = method;
    this.requestMethod = exchange.httpMethod;
    this.url = exchange.origin + exchange.target;
    this.header = protocol.requestHeader;
    this.contextValues = values;
    this.protocolName = protocol.protocol;
    this.requestHeader = this.header;
    this.responseHeader = protocol.responseHeader;
    this.responseTrailer = protocol.responseTrailer;
    this.values = values;
    this.timeoutMs = timeoutMs === undefined ? noTimeout : timeLeft(performance.now() + timeoutMs);
    this.call = call;
    Object.defineProperty(this, "signal", signalDescriptor);
  }
}

const unread: Message = { $typeName: "" };

// One descriptor for all, so that V8 gives all the objects one shape.
const signalDescriptor: PropertyDescriptor & ThisType<CallView> = {
  enumerable: true,
  configurable: true,
  get() {
    return this.call.signal;
  },
};

function noTimeout(): undefined {}

function timeLeft(deadlineMs: number): () => number {
  return () => deadlineMs - performance.now();
}
