/**
 * The third kind of call: forwarded as bytes, to another server or to handlers that decode messages themselves, instead
 * of handled by unary and streaming handlers.
 *
 * Its messages are envelopes of the binary format. If the caller's format is binary, they pass as they were received.
 * Others are decoded and encoded again. Large messages pass in the pieces in which they arrive.
 *
 * Interceptors of a unary call get messages that are decoded when they are read. A message that none of them reads
 * passes as it was received.
 */
import type { Message } from "@bufbuild/protobuf";
import type { ConnectError, HandlerContext, UnaryRequest, UnaryResponse } from "@connectrpc/connect";
import { noBytes } from "@plantstore/http";
import {
  type Caller,
  type CallSignal,
  type CallTarget,
  Envelope,
  type ForwardedMessage,
  type Forwarder,
  type Forwarding,
  type ForwardReply,
  type Intercept,
  oneMessage,
  readLargeEnvelope,
  type RequestMessages,
  type Rpc,
  type StreamWire,
  type UnaryRpc,
  type UnaryWire,
} from "@plantstore/protocols";
import { CallView, type ViewedCall } from "./call-view.ts";
import { ForwardedResponse, type ForwardedResponseParts } from "./forwarded-response.ts";
import { decodeBody, type MessageCall, readBody } from "./read-message.ts";
import { exchangeOf, headersToSend, type ServedRequest, serverOf } from "./request.ts";
import { type StreamedCall, StreamResponse } from "./stream-response.ts";
import { explainUnwritable } from "./wrong-value.ts";

/** A forwarded unary call that interceptors see. */
export interface InterceptedCall extends ViewedCall {
  /** Forwards the request that the last interceptor passes on. */
  forward(request: UnaryRequest, context: HandlerContext): Promise<UnaryResponse>;
}

const forwarderKey = Symbol("forwarder");

/** Returns a handler whose calls the gateway passes to `forwarder` instead, except streams with interceptors. */
export function withForwarder<H extends object>(handler: H, forwarder: Forwarder): H {
  return Object.assign(handler, { [forwarderKey]: forwarder });
}

/** Returns what forwards a handler's calls, or `undefined` to call the handler. */
export function forwarderOf(handler: object): Forwarder | undefined {
  return (handler as { readonly [forwarderKey]?: Forwarder })[forwarderKey];
}

/** Opens a forwarded call and starts its deadline. */
export function forwardCall(request: ServedRequest, target: CallTarget, forwarding: Forwarding): void {
  const { rpc } = target;
  const wire = target.open(exchangeOf(request));
  const timeoutMs = wire.timeoutMs ?? (target.kind === "unary" ? serverOf(request).defaultTimeoutMs : undefined);
  request.begin(new ForwardedCall(request, rpc, wire, forwarding, timeoutMs), rpc, timeoutMs);
}

/** A forwarded call, from its open wire to its response. */
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
  /** The request of a call with interceptors. An envelope until one of them reads the message. */
  #received: Message | Envelope | undefined;
  /** A streaming client's messages that are decoded. */
  #requests: RequestMessages | undefined;
  /** The response if it is a stream, or a message in pieces. */
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

  /** Created on first use: only hooks see a call without interceptors. */
  get view(): CallView {
    return (this.#view ??= new CallView(this, exchangeOf(this.request), this.rpc, this.wire, this.timeoutMs()));
  }

  get headers(): Caller["headers"] {
    return this.wire;
  }

  get takesParts(): boolean {
    // Interceptors get complete messages. The response to a streaming client is sent once it is complete.
    if (this.#forwarding.intercept !== undefined) return false;
    return this.wire.binary?.writesParts === true && this.rpc.method.methodKind !== "client_streaming";
  }

  // Rounded down, so that the other server's call does not outlive this one.
  timeoutMs(): number | undefined {
    return this.#deadlineMs === undefined ? undefined : Math.floor(this.#deadlineMs - performance.now());
  }

  get signal(): CallSignal {
    return this.request;
  }

  read(): void {
    const { wire, rpc } = this;
    if (isUnary(wire, rpc) || rpc.method.methodKind === "server_streaming") return readBody(this);
    const { binary } = wire;
    if (binary === undefined) this.#sendAll(this.#forwarded((this.#requests = wire.readMessages())));
    else if (this.#forwarding.takesParts) this.#sendAll(binary.readEnvelopes());
    else this.#sendAll(this.#forwarded(binary.readEnvelopes()));
  }

  received(body: Uint8Array | undefined): void {
    decodeBody(this, body);
  }

  decode(body: Uint8Array): Message | Envelope | Promise<Message | Envelope> {
    return this.wire.binary === undefined ? this.wire.readMessage(body) : this.wire.binary.readEnvelope(body);
  }

  receivedLarge(start: Uint8Array, rest: AsyncIterable<Uint8Array>): void {
    try {
      this.#sendAll(readLargeEnvelope(start, rest, this.rpc.options.readMaxBytes));
    } catch (error) {
      this.request.fail(error);
    }
  }

  run(message: Message | Envelope): void {
    try {
      // The server is shutting down.
      if (this.request.aborted) throw this.request.reason;
      const { intercept } = this.#forwarding;
      if (intercept !== undefined) return this.#intercept(intercept, message);
      const forwarded = this.#toForwarded(message);
      if (this.rpc.kind === "unary") this.#forwarding.forwarder.unary(this, forwarded, this);
      else this.#sendAll(oneMessage(forwarded));
    } catch (error) {
      this.reject(error);
    }
  }

  #intercept(intercept: Intercept, message: Message | Envelope): void {
    this.#received = message;
    Object.defineProperty(this.view, "message", requestMessage);
    // An interceptor in JavaScript may return a value of any type.
    Promise.resolve(intercept(this.view as CallView & UnaryRequest)).then(
      (response) => this.#respond(response),
      (error: unknown) => this.reject(error),
    );
  }

  /** Returns the request that interceptors see. */
  readRequest(): Message | undefined {
    if (this.#received instanceof Envelope) this.#received = this.#decodeRequest(this.#received);
    return this.#received;
  }

  replaceRequest(message: Message): void {
    this.#received = message;
  }

  async forward(request: UnaryRequest, context: HandlerContext): Promise<UnaryResponse> {
    const { view, wire, rpc } = this;
    const { forwarder } = this.#forwarding;
    const isUnchanged = context === view;
    const caller: Caller = isUnchanged ? this : { ...this.#callerIn(context), request: this.request };
    const forwarded = this.#toForwarded(isUnchanged ? (this.#received as Message | Envelope) : request.message);
    const envelope = await new Promise<Envelope>((resolve, reject) => {
      // A caller that takes no parts gets none.
      forwarder.unary(caller, forwarded, { resolve, resolveParts: () => undefined, reject });
    });
    const message = wire.binary === undefined ? forwarder.decode(envelope) : envelope;
    return new ForwardedResponse(rpc as UnaryRpc, context, message, (response) => forwarder.decode(response));
  }

  /** Returns the caller in the context of a request that an interceptor has changed. */
  #callerIn(context: HandlerContext): Omit<Caller, "request"> {
    const timeoutMs = (): number | undefined => context.timeoutMs();
    return { headers: context, signal: context.signal, takesParts: false, timeoutMs, begin: () => undefined };
  }

  #decodeRequest({ bytes }: Envelope): Message | undefined {
    return this.rpc.codecs.get("proto")?.decode(bytes);
  }

  #sendAll(messages: AsyncIterable<ForwardedMessage>): void {
    this.resolveParts(this.#forwarding.forwarder.stream(this, messages));
  }

  /** Returns a message as it is forwarded. Throws if it fails the check. */
  #toForwarded(message: Message | Envelope): Envelope {
    const { check, forwarder } = this.#forwarding;
    if (!(message instanceof Envelope)) {
      check?.(message, this.view);
      return forwarder.encode(message);
    }
    const decoded = check && this.#decodeRequest(message);
    if (decoded !== undefined) check?.(decoded, this.view);
    return message;
  }

  async *#forwarded(messages: AsyncIterable<Message | ForwardedMessage>): AsyncGenerator<ForwardedMessage> {
    // A message that is checked is never in pieces.
    for await (const message of messages) yield message instanceof Uint8Array ? message : this.#toForwarded(message);
  }

  begin(): void {
    if (this.rpc.kind === "stream") this.#response?.beginSoon();
  }

  resolve(envelope: Envelope): void {
    const { request, wire } = this;
    if (request.isDone) return;
    let message: Message | Envelope;
    try {
      message = wire.binary === undefined ? this.#forwarding.forwarder.decode(envelope) : envelope;
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
      const message = ForwardedResponse.unread(response) ?? response.message;
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
    // Only wires of envelopes read or write pieces of a unary call; they write streams too.
    this.#response ??= new StreamResponse(this, this.wire as StreamWire);
    this.#response.respond(responseHeader, responseTrailer, messages);
  }

  reject(error: unknown): void {
    this.request.failHandling(error, this.view);
  }

  toMessage(message: ForwardedMessage): Message | ForwardedMessage {
    const isDecoded = this.wire.binary === undefined && message instanceof Envelope;
    return isDecoded ? this.#forwarding.forwarder.decode(message) : message;
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

// Shared, so that V8 uses one shape for all views.
const requestMessage: PropertyDescriptor & ThisType<{ readonly call: ForwardedCall }> = {
  enumerable: true,
  configurable: true,
  get() {
    return this.call.readRequest();
  },
  set(message: Message) {
    this.call.replaceRequest(message);
  },
};

/** Returns whether an RPC's wire is that of a unary call. */
function isUnary(_wire: UnaryWire | StreamWire, rpc: Rpc): _wire is UnaryWire {
  return rpc.kind === "unary";
}
