import type { Message } from "@bufbuild/protobuf";
import type { HandlerContext, UnaryRequest, UnaryResponse } from "@connectrpc/connect";
import { Envelope, type ResponseParts } from "@plantstore/protocols";

/** A response's parts, whose message may be an envelope. */
export type ForwardedResponseParts = Omit<ResponseParts, "message"> & { readonly message: Message | Envelope };

/** A forwarded call's response that interceptors get. Its message is decoded at the first access. */
export class ForwardedResponse implements UnaryResponse {
  readonly stream = false;
  readonly service: UnaryResponse["service"];
  readonly method: UnaryResponse["method"];
  readonly header: Headers;
  readonly trailer: Headers;
  declare readonly message: Message;
  readonly #decode: (message: Envelope) => Message;
  #received: Message | Envelope;

  /** @param received - the message, decoded if the caller's format is not binary */
  constructor(
    { service, method }: UnaryRequest,
    { responseHeader, responseTrailer }: HandlerContext,
    received: Message | Envelope,
    decode: (message: Envelope) => Message,
  ) {
    this.service = service;
    this.method = method;
    this.header = responseHeader;
    this.trailer = responseTrailer;
    this.#decode = decode;
    this.#received = received;
    Object.defineProperty(this, "message", messageDescriptor);
  }

  /** Returns the message. */
  read(): Message {
    if (this.#received instanceof Envelope) this.#received = this.#decode(this.#received);
    return this.#received;
  }

  /** Returns a response's envelope if the message was not read, otherwise `undefined`. */
  static unread(response: object): Envelope | undefined {
    return #received in response && response.#received instanceof Envelope ? response.#received : undefined;
  }
}

// An own property, so that spread copies have the message, too. Shared, so that V8 uses one shape for all responses.
const messageDescriptor: PropertyDescriptor & ThisType<ForwardedResponse> = {
  enumerable: true,
  configurable: true,
  get() {
    return this.read();
  },
};
