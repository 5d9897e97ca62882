/**
 * Forwarded calls are the third kind of call, next to unary and streaming calls. Messages in these calls are forwarded
 * as bytes to another server, or to handlers that decode messages themselves.
 *
 * Forwarded messages are envelopes in the binary format. If the caller's format is binary, messages are forwarded
 * unchanged. Messages in other formats are decoded and encoded again. Large messages are forwarded in the pieces in
 * which they arrive.
 *
 * A message for interceptors is decoded when an interceptor reads the message. A message or stream that no interceptor
 * reads is forwarded unchanged.
 */
import type { Message } from "@bufbuild/protobuf";
import type {
  ConnectError,
  HandlerContext,
  StreamRequest,
  StreamResponse as InterceptedStream,
  UnaryRequest,
  UnaryResponse,
} from "@connectrpc/connect";
import { noBytes } from "@plantstore/http";
import {
  type Caller,
  type CallSignal,
  type CallTarget,
  Envelope,
  type ForwardedMessage,
  type Forwarding,
  type ForwardReply,
  type Intercept,
  oneMessage,
  type RequestMessages,
  type Rpc,
  type StreamWire,
  type UnaryWire,
} from "@plantstore/protocols";
import { CallView, unreadMessage } from "./call-view.ts";
import { ForwardedResponse, type ForwardedResponseParts, type InterceptedCall } from "./forwarded-response.ts";
import { decodeBody, type MessageCall, readBody } from "./read-message.ts";
import { exchangeOf, headersToSend, type ServedRequest, serverOf } from "./request.ts";
import { ConvertedMessages, convertStream, onlyMessage, sourceOf } from "./stream-messages.ts";
import { type StreamedCall, StreamResponse } from "./stream-response.ts";
import { explainUnwritable } from "./wrong-value.ts";

/** Opens a forwarded call and starts its deadline. */
export function forwardCall(request: ServedRequest, target: CallTarget, forwarding: Forwarding): void {
  const { rpc } = target;
  const wire = target.open(exchangeOf(request));
  const timeoutMs = wire.timeoutMs ?? (target.kind === "unary" ? serverOf(request).defaultTimeoutMs : undefined);
  request.begin(new ForwardedCall(request, rpc, wire, forwarding, timeoutMs), rpc, timeoutMs);
}

/** A forwarded call, from opening the wire to the response. */
class ForwardedCall
  implements
    MessageCall<Message | Envelope>,
    StreamedCall<Message | ForwardedMessage>,
    InterceptedCall,
    Caller,
    ForwardReply
{
  readonly request: ServedRequest;
  readonly rpc: Rpc;
  readonly wire: UnaryWire | StreamWire;
  readonly #forwarding: Forwarding;
  readonly #deadlineMs: number | undefined;
  #view: CallView | undefined;
  /** The request for interceptors: a stream, or a message that is decoded when an interceptor reads the message. */
  #received: Message | Envelope | AsyncIterable<Message> = unreadMessage;
  /** A streaming client's messages that are forwarded as bytes. */
  #envelopes: AsyncIterable<ForwardedMessage> | undefined;
  /** A streaming client's messages that are decoded. */
  #requests: RequestMessages | undefined;
  /** A streamed response, or a response message in pieces. */
  #response: StreamResponse<Message | ForwardedMessage> | undefined;

  constructor(
    request: ServedRequest,
    rpc: Rpc,
    wire: UnaryWire | StreamWire,
    forwarding: Forwarding,
    timeoutMs: number | undefined,
  ) {
    this.request = request;
    this.rpc = rpc;
    this.wire = wire;
    this.#forwarding = forwarding;
    this.#deadlineMs = timeoutMs === undefined ? undefined : performance.now() + timeoutMs;
    if (!isUnary(wire, rpc)) this.#response = new StreamResponse(this, wire);
  }

  /** The call's view, which is created on first use. Without interceptors, only hooks use the view. */
  get view(): CallView {
    if (this.#view !== undefined) return this.#view;
    const { request, rpc, wire } = this;
    return (this.#view = new CallView(this, exchangeOf(request), rpc, wire, this.timeoutMs(), requestMessage));
  }

  get headers(): Caller["headers"] {
    return this.wire;
  }

  get streamsLargeResponses(): boolean {
    const { intercept } = this.#forwarding;
    // Interceptors get complete messages. The response to a streaming client is sent once the response is complete.
    if (intercept !== undefined || this.rpc.method.methodKind === "client_streaming") return false;
    return this.#binary?.writesParts === true;
  }

  // The time is rounded down, so that the call to the other server does not outlive this call.
  timeoutMs(): number | undefined {
    return this.#deadlineMs === undefined ? undefined : Math.floor(this.#deadlineMs - performance.now());
  }

  get signal(): CallSignal {
    return this.request;
  }

  /** The caller's wire if messages are forwarded as bytes, or otherwise `undefined`. */
  get #binary(): (UnaryWire | StreamWire)["binary"] {
    return this.#forwarding.decodes ? undefined : this.wire.binary;
  }

  read(): void {
    const { wire, rpc } = this;
    if (isUnary(wire, rpc) || rpc.method.methodKind === "server_streaming") return readBody(this);
    const { intercept, decodes } = this.#forwarding;
    this.#envelopes = decodes ? undefined : wire.binary?.readEnvelopes();
    const messages = this.#envelopes ?? (this.#requests = wire.readMessages());
    if (intercept === undefined) this.#sendAll(this.#toForwardedStream(messages));
    else this.#interceptStream(intercept, messages);
  }

  received(body: Uint8Array | undefined): void {
    decodeBody(this, body);
  }

  decode(body: Uint8Array): Message | Envelope | Promise<Message | Envelope> {
    return this.#binary === undefined ? this.wire.readMessage(body) : this.#binary.readEnvelope(body);
  }

  receivedStart(start: Uint8Array, rest: AsyncIterable<Uint8Array>): boolean {
    try {
      const parts = this.#forwarding.streamsLargeRequests ? this.wire.binary?.readParts?.(start, rest) : undefined;
      if (parts === undefined) return false;
      this.#sendAll(parts);
    } catch (error) {
      this.request.fail(error);
    }
    return true;
  }

  run(message: Message | Envelope): void {
    try {
      // A shutdown has aborted the call.
      if (this.request.aborted) throw this.request.reason;
      const { forwarder, intercept } = this.#forwarding;
      if (intercept !== undefined) this.#interceptMessage(intercept, message);
      else if (this.rpc.kind === "unary") forwarder.unary(this, this.#toForwarded(message), this);
      else this.#sendAll(oneMessage(this.#toForwarded(message)));
    } catch (error) {
      this.reject(error);
    }
  }

  #interceptMessage(intercept: Intercept, message: Message | Envelope): void {
    if (this.rpc.kind === "stream") return this.#interceptStream(intercept, oneMessage(message));
    this.#received = message;
    this.#intercept(intercept);
  }

  #interceptStream(intercept: Intercept, messages: AsyncIterable<Message | ForwardedMessage>): void {
    this.#received = new ConvertedMessages(messages, (message) => this.#toRequest(message as Message | Envelope));
    this.#intercept(intercept);
  }

  #intercept(intercept: Intercept): void {
    const fail = (error: unknown): void => this.reject(error);
    // An interceptor in JavaScript may return a value of any type.
    const respond = (response: UnaryResponse | InterceptedStream): void => {
      try {
        if (this.#response === undefined) return this.#respond(response as UnaryResponse);
        const { header, trailer, message } = response as InterceptedStream;
        this.#response.respond(header, trailer, sourceOf(message));
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
    if (this.#received instanceof Envelope) this.#received = this.#toRequest(this.#received);
    return this.#received;
  }

  replaceRequest(message: Message | AsyncIterable<Message>): void {
    this.#received = message;
  }

  forward(request: UnaryRequest | StreamRequest, context: HandlerContext): ReturnType<Intercept> {
    const caller = context === this.view ? this : this.#callerIn(context);
    if (request.stream) return this.#forwardStream(request, context, caller);
    return new Promise((resolve, reject) => {
      const message = caller === this ? (this.#received as Message | Envelope) : request.message;
      this.#forwarding.forwarder.unary(caller, this.#toForwarded(message), {
        resolve: (envelope) => {
          try {
            resolve(this.#toUnaryResponse(envelope, request));
          } catch (error) {
            reject(error);
          }
        },
        // Never called, because interceptors get complete messages.
        resolveParts: () => undefined,
        reject,
      });
    });
  }

  /** Returns a response for interceptors. For a binary caller, the message is decoded when an interceptor reads it. */
  #toUnaryResponse(envelope: Envelope, request: UnaryRequest): UnaryResponse {
    return new ForwardedResponse(this, request, this.#binary === undefined ? this.decodeResponse(envelope) : envelope);
  }

  async #forwardStream(request: StreamRequest, context: HandlerContext, caller: Caller): Promise<InterceptedStream> {
    const { forwarder } = this.#forwarding;
    const { methodKind } = this.rpc.method;
    const source = sourceOf(request.message);
    const requests =
      methodKind === "server_streaming"
        ? oneMessage(this.#toForwarded((await onlyMessage(source)) as Message | Envelope))
        : this.#toForwardedStream(source);
    const all = forwarder.stream(caller, requests);
    // As with a handler, the response to a streaming client is complete before interceptors get the response.
    const responses = methodKind === "client_streaming" ? oneMessage(await onlyMessage(all)) : all;
    return {
      stream: true,
      service: request.service,
      method: request.method,
      header: context.responseHeader,
      trailer: context.responseTrailer,
      message: new ConvertedMessages(responses, (response) => this.decodeResponse(response as Envelope)),
    };
  }

  /** Returns the caller for a request that an interceptor has changed. `context` has the header, signal and timeout. */
  #callerIn(context: HandlerContext): Caller {
    const { request } = this;
    const timeoutMs = (): number | undefined => context.timeoutMs();
    const begin = (): void => this.begin();
    return { request, headers: context, signal: context.signal, streamsLargeResponses: false, timeoutMs, begin };
  }

  /** Returns a request decoded from a copy of its bytes, because interceptors and the check may keep the message. */
  #toRequest(message: Message | Envelope): Message {
    if (!(message instanceof Envelope)) return message;
    return this.rpc.codecs.proto.decode(new Uint8Array(message.bytes));
  }

  decodeResponse(envelope: Envelope): Message {
    return this.#forwarding.forwarder.decode(new Uint8Array(envelope.bytes));
  }

  #sendAll(messages: AsyncIterable<ForwardedMessage>): void {
    this.resolveParts(this.#forwarding.forwarder.stream(this, messages));
  }

  /** Returns a message's envelope for the forwarder. Throws if the check refuses the message. */
  #toForwarded(message: Message | Envelope): Envelope {
    const { check, forwarder } = this.#forwarding;
    if (check !== undefined) check(this.#toRequest(message), this.view);
    return message instanceof Envelope ? message : forwarder.encode(message);
  }

  /** Returns a stream of envelopes. A stream that no interceptor has read and no check needs is returned unchanged. */
  #toForwardedStream(messages: AsyncIterable<unknown>): AsyncIterable<ForwardedMessage> {
    if (messages === this.#envelopes && this.#forwarding.check === undefined) return this.#envelopes;
    // Only a stream that is forwarded unchanged has messages in pieces.
    return convertStream(messages, (message) => this.#toForwarded(message as Message | Envelope));
  }

  begin(): void {
    if (this.rpc.kind === "stream") this.#response?.beginSoon();
  }

  resolve(envelope: Envelope): void {
    const { request, wire } = this;
    if (request.isDone) return;
    let message: Message | Envelope;
    try {
      message = this.#binary === undefined ? this.#forwarding.forwarder.decode(envelope.bytes) : envelope;
    } catch (error) {
      return this.reject(error);
    }
    this.#respond({ message, header: wire.responseHeader, trailer: wire.responseTrailer });
  }

  #respond(response: ForwardedResponseParts): void {
    const { request, rpc, wire } = this;
    if (request.isDone || !isUnary(wire, rpc)) return;
    let written: void | Promise<void>;
    try {
      const header = headersToSend(response.header, wire.responseHeader);
      const trailer = headersToSend(response.trailer, wire.responseTrailer);
      const message = ForwardedResponse.unreadEnvelope(response, this) ?? response.message;
      written =
        message instanceof Envelope
          ? wire.binary?.writeEnvelope(message, header, trailer)
          : wire.writeMessage({ message, header, trailer });
    } catch (error) {
      return request.failToWrite(explainUnwritable(error, rpc, response));
    }
    request.succeed(written);
  }

  resolveParts(messages: AsyncIterable<ForwardedMessage>): void {
    const { responseHeader, responseTrailer } = this.wire;
    // Only a wire with envelopes handles pieces of a unary call. All wires with envelopes also write streams.
    this.#response ??= new StreamResponse(this, this.wire as StreamWire);
    this.#response.respond(responseHeader, responseTrailer, messages);
  }

  reject(error: unknown): void {
    this.request.failHandling(error, this.view);
  }

  toMessage(message: ForwardedMessage): Message | ForwardedMessage {
    const isDecoded = this.#binary === undefined && message instanceof Envelope;
    return isDecoded ? this.#forwarding.forwarder.decode(message.bytes) : message;
  }

  encode(message: Message | ForwardedMessage): Uint8Array | Promise<Uint8Array> {
    const wire = this.wire as StreamWire;
    if (!(message instanceof Envelope || message instanceof Uint8Array)) return wire.encode(message);
    return wire.binary?.encodeEnvelope(message) ?? noBytes;
  }

  writeError(error: ConnectError): void | Promise<void> {
    return (this.#response ?? this.wire).writeError(error);
  }

  get errorCompressionMsMax(): number | undefined {
    return this.#response?.errorCompressionMsMax;
  }

  close(): void {
    this.#requests?.close?.();
    this.#response?.close();
  }
}

// All views share this property descriptor, so that V8 uses one shape for all views.
const requestMessage: PropertyDescriptor & ThisType<{ readonly call: ForwardedCall }> = {
  enumerable: true,
  configurable: true,
  get() {
    return this.call.readRequest();
  },
  set(message: Message | AsyncIterable<Message>) {
    this.call.replaceRequest(message);
  },
};

function isUnary(_wire: UnaryWire | StreamWire, rpc: Rpc): _wire is UnaryWire {
  return rpc.kind === "unary";
}
