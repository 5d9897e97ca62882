import type { Message } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type Callee,
  type Content,
  Envelope,
  type ForwardedMessage,
  type Forwarder,
  type MessageCheck,
  type MethodCodecs,
  oneMessage,
  type Reply,
  takeEnvelopes,
  takeMessages,
} from "@plantstore/protocols";
import type { Call } from "./call.ts";
import { type Intercept, InterceptedCall } from "./intercepted-call.ts";
import { ConvertedMessages, convertStream, isAsyncIterable } from "./stream-messages.ts";

/**
 * Passes calls to a {@link Forwarder}. Messages in the binary format are forwarded unchanged, and large messages in the
 * parts in which they arrive. Messages in other formats are decoded and encoded again.
 */
export class ForwardingCallee implements Callee {
  readonly wants: Callee["wants"];
  readonly sendsParts: boolean;
  readonly memory: Callee["memory"];
  readonly take: Callee["take"];
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
    const decodes = forwarder.decodes === true;
    const isUnread = intercept === undefined && check === undefined;
    this.memory = decodes ? "own" : forwarder.memory;
    this.wants = decodes ? "messages" : isUnread && this.memory === "shared" ? "parts" : "envelopes";
    this.sendsParts = intercept === undefined && !decodes;
    this.take = decodes ? takeMessages(codecs) : takeEnvelopes;
    this.forwarder = forwarder;
    this.check = check;
    this.#codecs = codecs;
    this.#intercept = intercept;
  }

  unary(call: Call, message: Content, reply: Reply): void {
    // A shutdown has aborted the call.
    if (call.signal.aborted) throw call.signal.reason;
    if (this.#intercept !== undefined) new InterceptedCall(call, this, message).start(this.#intercept);
    else this.forwarder.unary(call, this.#toForwarded(message, call), reply);
  }

  stream(call: Call, messages: Content | AsyncIterable<Content | Uint8Array>, reply: Reply): void {
    if (this.#intercept !== undefined) return new InterceptedCall(call, this, messages).start(this.#intercept);
    const responses = this.forwarder.stream(call, this.#toForwardedStream(messages, call));
    reply.resolveAll(new ConvertedMessages(responses, (response) => this.decode(response as Envelope)));
  }

  decode(envelope: Envelope): Message {
    return this.forwarder.decode(envelope.bytes);
  }

  #toForwardedStream(
    messages: Content | AsyncIterable<Content | Uint8Array>,
    call: Call,
  ): AsyncIterable<ForwardedMessage> {
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
