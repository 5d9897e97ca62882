import type { Message } from "@bufbuild/protobuf";
import type { ContextValues, HandlerContext } from "@connectrpc/connect";
import type { Exchange } from "../exchange/index.ts";
import type { LazyHeaders, Rpc, Wire } from "../protocols/index.ts";
import type { AdmitRequest } from "./hooks.ts";

/** Called when a call has ended, or the server shuts down. */
export interface EndListener {
  handleEvent(): void;
}

/** The request of a call, as handlers see it. */
export interface ViewedRequest extends AdmitRequest {
  /** Aborts when the call ends, for whatever reason, or when the server shuts down. */
  readonly signal: AbortSignal;
  /** Why {@link signal} aborted, or would have if it had been read; `undefined` until then. */
  readonly ended: unknown;
  /**
   * Calls a listener when {@link signal} would abort. A signal with a listener costs a tenth of a forwarded call; this
   * costs nothing, but holds one listener.
   *
   * @returns whether it is held; `false` if there is another
   */
  whenEnded(listener: EndListener): boolean;
  /** Removes a listener. Returns `false` if it is not held. */
  removeEndListener(listener: EndListener): boolean;
}

/** The call that has a view. */
export interface ViewedCall {
  readonly view: CallView;
  readonly request: ViewedRequest;
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

  constructor(
    call: ViewedCall,
    { httpMethod, url }: Exchange,
    { method, kind }: Rpc,
    wire: Wire,
    timeoutMs: number | undefined,
  ) {
    const { contextValues, protocol } = call.request;
    this.stream = kind === "stream";
    this.service = method.parent;
    this.method = method;
    this.requestMethod = httpMethod;
    this.url = url;
    this.header = wire.requestHeader;
    this.contextValues = contextValues;
    this.protocolName = protocol;
    this.requestHeader = this.header;
    this.responseHeader = wire.responseHeader;
    this.responseTrailer = wire.responseTrailer;
    this.values = contextValues;
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
    return this.call.request.signal;
  },
};

function noTimeout(): undefined {}

// Whole, as the header of calls that a handler makes must have it; rounded down, so that these do not outlive this one.
function timeLeft(deadlineMs: number): () => number {
  return () => Math.floor(deadlineMs - performance.now());
}
