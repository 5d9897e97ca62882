import type { Message } from "@bufbuild/protobuf";
import type { HandlerContext, UnaryRequest, UnaryResponse } from "@connectrpc/connect";
import { Envelope, type Forwarder } from "../protocols/index.ts";
import type { ViewedCall } from "./call-view.ts";

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
