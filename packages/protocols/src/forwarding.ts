import type { Message } from "@bufbuild/protobuf";
import type { HandlerContext, Interceptor } from "@connectrpc/connect";
import type { Failure, BodyMemory } from "@plantstore/http";
import type { AdmitRequest } from "./hooks.ts";
import type { Envelope, ForwardedMessage } from "./shared/envelope.ts";

/** The AbortSignal members that forwarding needs. A real AbortSignal would take a tenth of a call's time. */
export interface CallSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: { handleEvent(): void }): void;
  removeEventListener(type: "abort", listener: { handleEvent(): void }): void;
}

/** Checks a message before the handler gets it. @throws ConnectError `InvalidArgument` for a broken rule */
export type MessageCheck = (message: Message, context: HandlerContext) => void;

/** Reports faults to `onFault`, together with the request's data. */
export interface FaultReceiver {
  report(error: unknown, failure: Failure): void;
}

/**
 * Forwards an RPC's calls to another server, or to a handler that decodes messages itself. A thrown error and a
 * rejected reply both end the call.
 */
export interface Forwarder {
  /**
   * The memory for request bodies: "own" if an application gets the bytes, or "shared" if the bytes are only forwarded.
   * With "shared", large messages may be forwarded in pieces.
   */
  readonly memory: BodyMemory;
  /** Whether all messages are decoded, because some message fields must not be forwarded. */
  readonly decodes?: boolean;
  /** Sends a call with one message in each direction. Never calls `reply` after the caller has aborted. */
  unary(caller: Caller, request: Envelope, reply: ForwardReply): void;
  /** Sends a streaming call, or a unary call with a large message. Returns the response messages as they arrive. */
  stream(caller: Caller, requests: AsyncIterable<ForwardedMessage>): AsyncIterable<ForwardedMessage>;
  /** Encodes a message for a caller whose format is not binary. */
  encode(message: Message): Envelope;
  /**
   * Decodes a message for an interceptor, or for a caller whose format is not binary. Fields of the message may be
   * views into the bytes.
   *
   * @throws ConnectError if the message is not valid
   */
  decode(bytes: Uint8Array): Message;
}

/** A forwarded call's caller. */
export interface Caller {
  readonly request: AdmitRequest & FaultReceiver;
  /** The call's headers. Forwarding adds the other server's fields to the response header and trailer. */
  readonly headers: Pick<HandlerContext, "requestHeader" | "responseHeader" | "responseTrailer">;
  /** Aborts when the call ends for any reason, or when this server shuts down. */
  readonly signal: CallSignal;
  /** Whether a large response message may be passed on in pieces. */
  readonly streamsLargeResponses: boolean;
  /** Returns the milliseconds until the caller's deadline, or `undefined` without one. */
  timeoutMs(): number | undefined;
  /** Called when the response header is complete. The header can then be sent before the first message. */
  begin(): void;
}

/** Receives the response of {@link Forwarder.unary}. Only one method of the reply is called, and only once. */
export interface ForwardReply {
  resolve(message: Envelope): void;
  /** Receives the pieces of a large message. Called only if {@link Caller.streamsLargeResponses} is `true`. */
  resolveParts(parts: AsyncIterable<ForwardedMessage>): void;
  reject(error: unknown): void;
}

/** Runs the interceptors. The last interceptor calls {@link InterceptedCall.forward}. */
export type Intercept = ReturnType<Interceptor>;

/** How an RPC's calls are forwarded. */
export class Forwarding {
  readonly forwarder: Forwarder;
  readonly check: MessageCheck | undefined;
  readonly intercept: Intercept | undefined;
  readonly decodes: boolean;
  readonly memory: BodyMemory;
  /** Whether a large request may be forwarded in pieces, before the complete message has arrived. */
  readonly streamsLargeRequests: boolean;

  /**
   * @param check - checks requests, which are then forwarded only as complete messages
   * @param intercept - runs the interceptors, or `undefined` if the RPC has no interceptors
   */
  constructor(forwarder: Forwarder, check: MessageCheck | undefined, intercept: Intercept | undefined) {
    this.forwarder = forwarder;
    this.check = check;
    this.intercept = intercept;
    this.decodes = forwarder.decodes === true;
    this.memory = this.decodes ? "own" : forwarder.memory;
    this.streamsLargeRequests = this.memory === "shared" && intercept === undefined && check === undefined;
  }
}
