import type { Message } from "@bufbuild/protobuf";
import type { ContextKey, ContextValues, HandlerContext, UnaryRequest, UnaryResponse } from "@connectrpc/connect";
import type { Exchange } from "../http/index.ts";
import {
  type AdmitRequest,
  type CallSignal,
  Envelope,
  type FaultReceiver,
  type Forwarder,
  type LazyHeaders,
  type Rpc,
  type Wire,
} from "../protocols/index.ts";

/** The request of a call, with the members that handlers use. */
export interface ViewedRequest extends AdmitRequest, CallSignal, FaultReceiver {
  /** Aborts when the call ends for any reason, or when the server shuts down. */
  readonly signal: AbortSignal;
  /** The abort reason of {@link signal}, even if the signal was never read. `undefined` until the signal aborts. */
  readonly abortReason: unknown;
}

/** A call for which a {@link CallView} exists. */
export interface ViewedCall {
  readonly view: CallView;
  readonly request: ViewedRequest;
  readonly wire: Wire;
}

/**
 * The call as interceptors and the handler see it: both Connect's `UnaryRequest` or `StreamRequest`, and
 * Connect's `HandlerContext`.
 *
 * One object for request and context costs half as much as two objects. Every member is an own property, so that
 * request and context can be spread. Header and signal are built on first use.
 */
export class CallView implements HandlerContext {
  readonly stream: boolean;
  readonly service: HandlerContext["service"];
  readonly method: HandlerContext["method"];
  readonly requestMethod: string;
  readonly url: string;
  readonly header: Headers;
  readonly contextValues: ContextValues;
  /** The received message or message stream, or {@link unreadMessage} before the body is read. */
  declare message: Message | AsyncIterable<Message>;
  readonly protocolName: string;
  readonly requestHeader: Headers;
  readonly responseHeader: LazyHeaders;
  readonly responseTrailer: LazyHeaders;
  readonly values: ContextValues;
  readonly timeoutMs: () => number | undefined;
  declare readonly signal: AbortSignal;
  /** The viewed call, which is an own property so that spread copies of a request also have the call. */
  readonly call: ViewedCall;

  /** @param messageProperty - the property `message`, for calls that decode a message when the message is read */
  constructor(
    call: ViewedCall,
    { httpMethod, url }: Exchange,
    { registered: method, kind }: Rpc,
    wire: Wire,
    deadlineMs: number | undefined,
    messageProperty?: PropertyDescriptor,
  ) {
    const { contextValues, protocol } = call.request;
    this.stream = kind === "stream";
    this.service = method.parent;
    this.method = method;
    this.requestMethod = httpMethod;
    this.url = url;
    // If the property were redefined later, V8 would turn the view into a dictionary, which is slow.
    if (messageProperty === undefined) this.message = unreadMessage;
    else Object.defineProperty(this, "message", messageProperty);
    this.header = wire.requestHeader;
    this.contextValues = contextValues;
    this.protocolName = protocol;
    this.requestHeader = this.header;
    this.responseHeader = wire.responseHeader;
    this.responseTrailer = wire.responseTrailer;
    this.values = contextValues;
    this.timeoutMs = deadlineMs === undefined ? noTimeoutMs : remainingTime(deadlineMs);
    this.call = call;
    Object.defineProperty(this, "signal", signalDescriptor);
  }
}

/** Stands in {@link CallView.message} until the body is read. */
const unreadMessage: Message = { $typeName: "" };

// All views share this property descriptor, so that V8 uses one shape for all views.
const signalDescriptor: PropertyDescriptor & ThisType<CallView> = {
  enumerable: true,
  configurable: true,
  get() {
    return this.call.request.signal;
  },
};

function noTimeoutMs(): undefined {}

// Returns an integer, because handlers send the remaining time to other servers in timeout headers. The time is rounded
// down, so that calls to other servers do not outlive this call.
function remainingTime(deadlineMs: number): () => number {
  return () => Math.floor(deadlineMs - performance.now());
}

/**
 * Returns the header or trailer to send: the call's original object, or a copy of an interceptor's replacement.
 *
 * @throws TypeError for a value that is not a field list, or has an invalid field name (RFC 9110 §5.1)
 */
export function headersToSend(headers: Headers, own: LazyHeaders): Headers {
  return headers === own ? own : new Headers([...headers]);
}

/** A forwarded call's response for interceptors. The message is decoded at the first access. */
export class ForwardedResponse implements UnaryResponse {
  readonly stream = false;
  readonly service: UnaryResponse["service"];
  readonly method: UnaryResponse["method"];
  readonly header: Headers;
  readonly trailer: Headers;
  declare readonly message: Message;
  readonly #call: ViewedCall;
  readonly #forwarder: Forwarder;
  #received: Message | Envelope;

  /** @param received - the message, which is decoded if the caller's format is not binary */
  constructor(
    call: ViewedCall,
    { responseHeader, responseTrailer }: Pick<HandlerContext, "responseHeader" | "responseTrailer">,
    forwarder: Forwarder,
    { service, method }: UnaryRequest,
    received: Message | Envelope,
  ) {
    this.service = service;
    this.method = method;
    this.header = responseHeader;
    this.trailer = responseTrailer;
    this.#call = call;
    this.#forwarder = forwarder;
    this.#received = received;
    Object.defineProperty(this, "message", messageDescriptor);
  }

  read(): Message {
    if (this.#received instanceof Envelope) this.#received = decodeCopy(this.#forwarder, this.#received);
    return this.#received;
  }

  /**
   * Returns the envelope of a call's response if no interceptor has read the message, or otherwise `undefined`.
   *
   * An interceptor may return another call's response, whose envelope may be in a format that `call` cannot write.
   */
  static unreadEnvelope(response: object, call: ViewedCall): Envelope | undefined {
    if (!(#received in response) || response.#call !== call) return undefined;
    return response.#received instanceof Envelope ? response.#received : undefined;
  }
}

/** Returns a response decoded from a copy of its bytes, because interceptors may keep the message. */
export function decodeCopy(forwarder: Forwarder, { bytes }: Envelope): Message {
  return forwarder.decode(new Uint8Array(bytes));
}

// The message is an own property, so that spread copies have the message. V8 uses one shape for a shared descriptor.
const messageDescriptor: PropertyDescriptor & ThisType<ForwardedResponse> = {
  enumerable: true,
  configurable: true,
  get() {
    return this.read();
  },
};

/** A call's context values. Connect's implementation keeps three closures in memory for each pending call. */
export class CallValues implements ContextValues {
  get<T>({ id, defaultValue }: ContextKey<T>): T {
    return id in this ? ((this as Stored<T>)[id] as T) : defaultValue;
  }

  set<T>({ id }: ContextKey<T>, value: T): this {
    (this as Stored<T>)[id] = value;
    return this;
  }

  delete({ id }: ContextKey<unknown>): this {
    delete (this as Stored<unknown>)[id];
    return this;
  }
}

type Stored<T> = Record<symbol, T>;
