import type { DescMethod, Message } from "@bufbuild/protobuf";
import type {
  ConnectRouter,
  ConnectRouterOptions,
  HandlerContext,
  Interceptor,
  MethodImpl,
  StreamRequest,
  StreamResponse as InterceptedStream,
  UnaryRequest,
  UnaryResponse,
} from "@connectrpc/connect";
import type { HeaderFields } from "../http/index.ts";
import {
  type Callee,
  type Caller,
  type Content,
  Envelope,
  type ForwardedMessage,
  type Forwarder,
  LazyHeaders,
  type MessageCheck,
  type MethodCodecs,
  oneMessage,
  type Reply,
  takeEnvelopes,
  takeMessages,
} from "../protocols/index.ts";
import { CallView, decodeCopy, ForwardedResponse, type ViewedCall } from "./call-view.ts";
import type { Call } from "./call.ts";
import { ServedRequest } from "./request.ts";
import { ConvertedMessages, convertStream, isAsyncIterable, onlyMessage, sourceOf } from "./stream-messages.ts";

/** Runs the interceptors. The last interceptor calls {@link InterceptedCall.forward}. */
type Intercept = ReturnType<Interceptor>;

type Received = Content | AsyncIterable<Content | Uint8Array>;

/**
 * Passes calls to a {@link Forwarder}. Messages in the binary format are forwarded unchanged, and large messages in the
 * parts in which they arrive. Messages in other formats are decoded and encoded again.
 */
export class ForwardingCallee implements Callee {
  readonly wants: Callee["wants"];
  readonly sendsParts: boolean;
  readonly memory: Callee["memory"];
  readonly take: Callee["take"];
  readonly isIdentityField: Forwarder["isIdentityField"];
  readonly forwarder: Forwarder;
  readonly check: MessageCheck | undefined;
  readonly #codecs: MethodCodecs;
  readonly #intercept: Intercept | undefined;

  /**
   * @param check - checks requests, which are then forwarded only as complete messages
   * @param intercept - runs the interceptors, or `undefined` if the RPC has no interceptors
   */
  constructor(
    forwarder: Forwarder,
    codecs: MethodCodecs,
    check: MessageCheck | undefined,
    intercept: Intercept | undefined,
  ) {
    const decodes = forwarder.decodes;
    const isUnread = intercept === undefined && check === undefined;
    this.memory = decodes ? "own" : forwarder.memory;
    this.wants = decodes ? "messages" : isUnread && this.memory === "shared" ? "parts" : "envelopes";
    this.sendsParts = intercept === undefined && !decodes;
    this.take = decodes ? takeMessages(codecs) : takeEnvelopes;
    this.isIdentityField = forwarder.isIdentityField;
    this.forwarder = forwarder;
    this.check = check;
    this.#codecs = codecs;
    this.#intercept = intercept;
  }

  unary(call: Call, message: Content, reply: Reply): void {
    if (call.signal.aborted) throw call.signal.reason;
    if (this.#intercept !== undefined) new InterceptedCall(call, this, message).start(this.#intercept);
    else this.forwarder.unary(call, this.#toForwarded(message, call), reply);
  }

  stream(call: Call, messages: Received, reply: Reply): void {
    if (this.#intercept !== undefined) return new InterceptedCall(call, this, messages).start(this.#intercept);
    const responses = this.forwarder.stream(call, this.#toForwardedStream(messages, call));
    const toMessage = (response: ForwardedMessage | Message): Message =>
      response instanceof Envelope ? this.decode(response) : (response as Message);
    reply.resolveAll(new ConvertedMessages(responses, toMessage));
  }

  decode(envelope: Envelope): Message {
    return this.forwarder.decode(envelope.bytes);
  }

  #toForwardedStream(messages: Received, call: Call): AsyncIterable<ForwardedMessage> {
    if (!isAsyncIterable(messages)) return oneMessage(this.#toForwarded(messages, call));
    if (call.passesOn && this.check === undefined) return messages as AsyncIterable<ForwardedMessage>;
    // Only a stream that is forwarded unchanged has messages in parts.
    return convertStream(messages, (message) => this.#toForwarded(message as Content, call));
  }

  #toForwarded(message: Content, call: Call): Envelope {
    if (this.check === undefined && message instanceof Envelope) return message;
    return this.toForwarded(message, call.view);
  }

  /** Returns a message's envelope for the forwarder. Throws if the check refuses the message. */
  toForwarded(message: Content, context: HandlerContext): Envelope {
    if (this.check !== undefined) this.check(this.toRequest(message), context);
    return message instanceof Envelope ? message : this.forwarder.encode(message);
  }

  /** Returns a request decoded from a copy of its bytes, because interceptors and the check may keep the message. */
  toRequest(message: Content): Message {
    return message instanceof Envelope ? this.#codecs.proto.decode(new Uint8Array(message.bytes)) : message;
  }
}

/**
 * A forwarded call of an RPC with interceptors. A message for interceptors is decoded when an interceptor reads the
 * message. A message or stream that no interceptor reads is forwarded unchanged.
 */
export class InterceptedCall implements ViewedCall {
  readonly view: CallView;
  readonly #served: Call;
  readonly #callee: ForwardingCallee;
  readonly #forwarder: Forwarder;
  /** The request for interceptors: a stream, or a message that is decoded when an interceptor reads the message. */
  #received: Content | AsyncIterable<Message>;
  readonly #messages: AsyncIterable<Content | Uint8Array> | undefined;
  /** The fields of the response header and trailer before the first attempt. */
  #before: readonly [header: HeaderFields, trailer: HeaderFields] | undefined;
  /** The headers of further attempts that have failed, by error. */
  #failed: Map<unknown, Caller["headers"]> | undefined;

  constructor(served: Call, callee: ForwardingCallee, received: Received) {
    const { request, rpc, wire, deadlineMs } = served;
    this.#served = served;
    this.#callee = callee;
    this.#forwarder = callee.forwarder;
    this.#messages = rpc.kind === "unary" ? undefined : isAsyncIterable(received) ? received : oneMessage(received);
    this.#received =
      this.#messages === undefined
        ? (received as Content)
        : new ConvertedMessages(this.#messages, (message) => callee.toRequest(message as Content));
    this.view = new CallView(this, ServedRequest.exchangeOf(request), rpc, wire, deadlineMs, requestMessage);
  }

  get request(): Call["request"] {
    return this.#served.request;
  }

  get wire(): Call["wire"] {
    return this.#served.wire;
  }

  start(intercept: Intercept): void {
    const served = this.#served;
    const fail = (error: unknown): void => {
      const headers = this.#failed?.get(error);
      if (headers !== undefined) this.#replaceResponseHeaders(headers);
      served.reject(error);
    };
    // An interceptor in JavaScript may return a value of any type.
    const respond = (response: UnaryResponse | InterceptedStream): void => {
      try {
        if (this.#messages === undefined) return served.resolve(response as UnaryResponse);
        served.resolveAll((response as InterceptedStream).message, response);
      } catch (error) {
        fail(error);
      }
    };
    // An interceptor in JavaScript may throw synchronously.
    try {
      const returned = intercept(this.view as CallView & (UnaryRequest | StreamRequest));
      Promise.resolve(returned).then(respond, fail);
    } catch (error) {
      fail(error);
    }
  }

  /** Returns the request for interceptors, decoded. */
  readRequest(): Message | AsyncIterable<Message> {
    if (this.#received instanceof Envelope) this.#received = this.#callee.toRequest(this.#received);
    return this.#received;
  }

  replaceRequest(message: Message | AsyncIterable<Message>): void {
    this.#received = message;
  }

  /** Forwards the request that the last interceptor passes on. */
  forward(request: UnaryRequest | StreamRequest, context: HandlerContext): ReturnType<Intercept> {
    const headers = this.#headersOfAttempt(request, context);
    const caller = context === this.view && headers === context ? this.#served : this.#callerIn(context, headers);
    if (request.stream) return this.#forwardStream(request, context, caller);
    return new Promise((resolve, reject) => {
      const message = context === this.view ? (this.#received as Content) : request.message;
      this.#forwarder.unary(caller, this.#callee.toForwarded(message, this.view), {
        resolve: (response) => {
          try {
            const received = response instanceof Envelope ? response : response.message;
            resolve(this.#toUnaryResponse(received, request, headers));
          } catch (error) {
            reject(error);
          }
        },
        // Never called, because interceptors get complete messages.
        resolveAll: () => undefined,
        reject: (error) => {
          if (headers !== context) (this.#failed ??= new Map()).set(error, headers);
          reject(error);
        },
      });
    });
  }

  /**
   * Returns the headers of an attempt. If an interceptor calls `next` again, each unary response has only its own
   * metadata, and a stream has that of the last attempt.
   */
  #headersOfAttempt({ stream }: UnaryRequest | StreamRequest, context: HandlerContext): Caller["headers"] {
    const { responseHeader, responseTrailer } = this.wire;
    if (this.#before === undefined) {
      this.#before = [responseHeader.fields, responseTrailer.fields];
      return context;
    }
    const [header, trailer] = this.#before;
    const headers = {
      requestHeader: context.requestHeader,
      responseHeader: new LazyHeaders(header),
      responseTrailer: new LazyHeaders(trailer),
    };
    if (!stream) return headers;
    this.#replaceResponseHeaders(headers);
    this.#served.delayBegin();
    return context;
  }

  #replaceResponseHeaders({ responseHeader, responseTrailer }: Caller["headers"]): void {
    replaceFields(this.wire.responseHeader, responseHeader);
    replaceFields(this.wire.responseTrailer, responseTrailer);
  }

  /** Returns a response for interceptors. For a binary caller, the message is decoded when an interceptor reads it. */
  #toUnaryResponse(response: Content, request: UnaryRequest, headers: Caller["headers"]): UnaryResponse {
    const received = this.#served.passesOn ? response : this.#decodeCopy(response);
    return new ForwardedResponse(this.#served, headers, this.#forwarder, request, received);
  }

  async #forwardStream(request: StreamRequest, context: HandlerContext, caller: Caller): Promise<InterceptedStream> {
    const { methodKind } = this.#served.rpc.method;
    const source = sourceOf(request.message);
    const requests =
      methodKind === "server_streaming"
        ? oneMessage(this.#callee.toForwarded((await onlyMessage(source)) as Content, this.view))
        : this.#toForwardedStream(source);
    const all = this.#forwarder.stream(caller, requests);
    // As with a handler, the response to a streaming client is complete before interceptors get the response.
    const responses = methodKind === "client_streaming" ? oneMessage(await onlyMessage(all)) : all;
    return {
      stream: true,
      service: request.service,
      method: request.method,
      header: context.responseHeader,
      trailer: context.responseTrailer,
      message: new ConvertedMessages(responses, (response) => this.#decodeCopy(response as Content)),
    };
  }

  #decodeCopy(response: Content): Message {
    return response instanceof Envelope ? decodeCopy(this.#forwarder, response) : response;
  }

  /** Returns a stream of envelopes. A stream that no interceptor has read and no check needs is returned unchanged. */
  #toForwardedStream(messages: AsyncIterable<unknown>): AsyncIterable<Envelope> {
    const isUnchanged = messages === this.#messages && this.#served.passesOn && this.#callee.check === undefined;
    if (isUnchanged) return messages as AsyncIterable<Envelope>;
    return convertStream(messages, (message) => this.#callee.toForwarded(message as Content, this.view));
  }

  /** Returns the caller for a request that an interceptor has changed. `context` has the header, signal and timeout. */
  #callerIn(context: HandlerContext, headers: Caller["headers"]): Caller {
    const { request } = this;
    const { acceptsMessages } = this.#served;
    const timeoutMs = (): number | undefined => context.timeoutMs();
    const begin = (): void => this.#served.begin();
    return {
      request,
      headers,
      signal: context.signal,
      streamsLargeResponses: false,
      acceptsMessages,
      timeoutMs,
      begin,
    };
  }
}

function replaceFields(headers: Headers, by: Headers): void {
  const names = [...headers.keys()];
  for (const name of names) headers.delete(name);
  for (const [name, value] of by) headers.append(name, value);
}

// All views share this property descriptor, so that V8 uses one shape for all views.
const requestMessage: PropertyDescriptor & ThisType<{ readonly call: InterceptedCall }> = {
  enumerable: true,
  configurable: true,
  get() {
    return this.call.readRequest();
  },
  set(message: Message | AsyncIterable<Message>) {
    this.call.replaceRequest(message);
  },
};

const forwarderKey = Symbol("forwarder");

/** Registers an RPC with the forwarder for the RPC's calls. @param options - the options for decoding messages */
export function registerForwarder(
  router: ConnectRouter,
  method: DescMethod,
  forwarder: Forwarder,
  options?: Pick<ConnectRouterOptions, "binaryOptions">,
): void {
  // The gateway never calls the handler, but Connect's own router does.
  const handler = Object.assign(
    () => {
      throw new TypeError("a handler was called with the context of another server");
    },
    { [forwarderKey]: forwarder },
  );
  router.rpc(method, handler as MethodImpl<DescMethod>, options);
}

/** Returns the forwarder for a handler's calls, or `undefined` if the gateway calls the handler. */
export function forwarderOf(handler: object): Forwarder | undefined {
  return (handler as { readonly [forwarderKey]?: Forwarder })[forwarderKey];
}
