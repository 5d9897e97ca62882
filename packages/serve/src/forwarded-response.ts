import type { Message } from "@bufbuild/protobuf";
import type { UnaryRequest, UnaryResponse } from "@connectrpc/connect";
import { Envelope } from "@plantstore/protocols";
import type { Call } from "./call.ts";
import type { InterceptedCall } from "./intercepted-call.ts";

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
  static unreadEnvelope(response: object, call: Call): Envelope | undefined {
    if (!(#received in response) || response.#call.served !== call) return undefined;
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
