import type { DescMessage, DescMethod, Message, MessageInitShape } from "@bufbuild/protobuf";
import type { ConnectRouterOptions, HandlerContext, UnaryResponse } from "@connectrpc/connect";
import type { UniversalHandlerOptions } from "@connectrpc/connect/protocol";
import type { BodyMemory, Failure } from "../http/index.ts";
import type { Content, Envelope, ForwardedMessage, Take } from "./envelope/envelope.ts";
import type { MethodCodecs } from "./formats.ts";
import type { AdmitRequest } from "./hooks.ts";

/** An RPC's options in Connect, including the options of the RPC's router. */
type RpcOptions = UniversalHandlerOptions & Pick<ConnectRouterOptions, "connect" | "grpc" | "grpcWeb">;

/** One RPC in the routes, prepared before the first call. */
export interface Rpc {
  /** Whether the RPC has one message in each direction, or a stream in at least one direction. */
  readonly kind: "unary" | "stream";
  /** `/package.Service/Method` */
  readonly name: string;
  /** The HTTP methods that calls to this RPC may have. */
  readonly httpMethods: readonly string[];
  readonly options: RpcOptions;
  readonly codecs: MethodCodecs;
  readonly method: DescMethod;
  /** The descriptor that handlers and interceptors see, including elements that are hidden from callers. */
  readonly registered: DescMethod;
  readonly callee: Callee;
}

/** The value that a handler returns: a message, or the fields of a message. */
export type MessageInit = MessageInitShape<DescMessage>;

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
  readonly decodes: boolean;
  /** Whether a name in lower case identifies the caller. REST ignores `Grpc-Metadata-Name` for these names. */
  readonly isIdentityField?: (name: string) => boolean;
  /** Sends a call with one message in each direction. Never calls `reply` after the caller has aborted. */
  unary(caller: Caller, request: Envelope, reply: Reply): void;
  /** Sends a streaming call, or a unary call with a large message. Returns the response messages as they arrive. */
  stream(caller: Caller, requests: AsyncIterable<ForwardedMessage>): AsyncIterable<ForwardedMessage | Message>;
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

/** A call, as its callee sees it. */
export interface Caller {
  readonly request: AdmitRequest & FaultReceiver;
  /** The call's headers. Forwarding adds the other server's fields to the response header and trailer. */
  readonly headers: Pick<HandlerContext, "requestHeader" | "responseHeader" | "responseTrailer">;
  /** Aborts when the call ends for any reason, or when this server shuts down. */
  readonly signal: CallSignal;
  /** Whether a large response message may be passed on in pieces. */
  readonly streamsLargeResponses: boolean;
  /** Whether responses may be messages instead of envelopes, because they are not sent in binary. */
  readonly acceptsMessages: boolean;
  /** Returns the milliseconds until the caller's deadline, or `undefined` without one. */
  timeoutMs(): number | undefined;
  /** Called when the response header is complete. The header can then be sent before the first message. */
  begin(): void;
}

/** A unary response's message, header and trailer. */
export type ResponseParts = Pick<UnaryResponse, "header" | "trailer"> & { readonly message: Content };

/** Receives the response of a {@link Callee}. Only one method is called, and only once. The methods never throw. */
export interface Reply {
  /** Receives a response, or the envelope of a response without more header or trailer fields. */
  resolve(response: Envelope | ResponseParts): void;
  /**
   * Receives a stream's messages, or the parts of a large message. Parts are only passed if
   * {@link Caller.streamsLargeResponses} is `true`.
   */
  resolveAll(messages: AsyncIterable<unknown>, fields?: Pick<ResponseParts, "header" | "trailer">): void;
  /** Receives a thrown value of any type. */
  reject(thrown: unknown): void;
}

/** The other side of an RPC's calls: a handler with its interceptors, or another server. */
export interface Callee {
  /** What the callee gets from a caller in the binary format: messages, envelopes, or also large envelopes in parts. */
  readonly wants: "messages" | "envelopes" | "parts";
  /** Whether a large response may be passed on in parts, and a response's bytes are not used after they are sent. */
  readonly sendsParts: boolean;
  /** The memory for request bodies, as in {@link Forwarder.memory}. */
  readonly memory: BodyMemory;
  /** Converts a received envelope to what the callee wants. */
  readonly take: Take<Content>;
  readonly isIdentityField?: Forwarder["isIdentityField"];
  /** Decodes a response's envelope for a caller whose format is not binary. */
  decode(envelope: Envelope): Message;
  /** Calls a unary RPC. A thrown error is equivalent to a call of `reply.reject`. */
  unary(caller: Caller, message: Content, reply: Reply): void;
  /** Calls a streaming RPC with the messages or the only message, or a unary RPC with the parts of a large message. */
  stream(caller: Caller, messages: Content | AsyncIterable<Content | Uint8Array>, reply: Reply): void;
}
