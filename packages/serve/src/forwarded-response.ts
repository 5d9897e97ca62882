import type { Message } from "@bufbuild/protobuf";
import type { HandlerContext, StreamRequest, UnaryRequest, UnaryResponse } from "@connectrpc/connect";
import { Envelope, type Intercept, type ResponseParts } from "@plantstore/protocols";
import type { ViewedCall } from "./call-view.ts";

/** A forwarded call of an RPC with interceptors. */
export interface InterceptedCall extends ViewedCall {
  /** Forwards the request that the last interceptor passes on. */
  forward(request: UnaryRequest | StreamRequest, context: HandlerContext): ReturnType<Intercept>;
  /** Returns a response decoded from a copy of its bytes, because interceptors may keep the message. */
  decodeResponse(envelope: Envelope): Message;
}

/** A response's message, header and trailer. The message may be an envelope. */
export type ForwardedResponseParts = Omit<ResponseParts, "message"> & { readonly message: Message | Envelope };

/** A forwarded call's response for interceptors. The message is decoded at the first access. */
export class ForwardedResponse implements UnaryResponse {
  readonly stream = false;
  readonly service: UnaryResponse["service"];
  readonly method: UnaryResponse["method"];
  readonly header: Headers;
  readonly trailer: Headers;
  declare readonly message: Message;
  readonly #call: InterceptedCall;
  #received: Message | Envelope;

  /** @param received - the message, which is decoded if the caller's format is not binary */
  constructor(call: InterceptedCall, { service, method }: UnaryRequest, received: Message | Envelope) {
    this.service = service;
    this.method = method;
    this.header = call.wire.responseHeader;
    this.trailer = call.wire.responseTrailer;
    this.#call = call;
    this.#received = received;
    Object.defineProperty(this, "message", messageDescriptor);
  }

  read(): Message {
    if (this.#received instanceof Envelope) this.#received = this.#call.decodeResponse(this.#received);
    return this.#received;
  }

  /**
   * Returns the envelope of a call's response if no interceptor has read the message, or otherwise `undefined`.
   *
   * An interceptor may return another call's response, whose envelope may be in a format that `call` cannot write.
   */
  static unreadEnvelope(response: object, call: InterceptedCall): Envelope | undefined {
    if (!(#received in response) || response.#call !== call) return undefined;
    return response.#received instanceof Envelope ? response.#received : undefined;
  }
}

// The message is an own property, so that spread copies have the message. V8 uses one shape for a shared descriptor.
const messageDescriptor: PropertyDescriptor & ThisType<ForwardedResponse> = {
  enumerable: true,
  configurable: true,
  get() {
    return this.read();
  },
};
