import type { Message, Registry } from "@bufbuild/protobuf";
import type { ConnectError, ContextValues } from "@connectrpc/connect";
import type { BodyPlan, CommonHeaderFields, Exchange, HeaderFields, HeaderReader, Peer } from "@plantstore/http";
import type { ProtocolName } from "./protocol-name.ts";
import type { ErrorRecordWriter, RestRoutes } from "./rest/rules/index.ts";
import type { Envelope, ForwardedMessage } from "./shared/envelope.ts";
import type { LazyHeaders } from "./shared/lazy-headers.ts";
import type { ResponseParts, Rpc, StreamRpc, UnaryRpc } from "./rpc.ts";

/** The inputs for creating a gateway's protocols. */
export interface ProtocolParts {
  readonly rpcs: readonly Rpc[];
  readonly restRoutes: RestRoutes;
  readonly writeErrorRecord: ErrorRecordWriter;
  /** The types that messages and error details in JSON may name. */
  readonly registry: Registry;
  /** The origins whose pages may call, from the CORS options, or `undefined` if CORS is off. */
  readonly corsOrigins: readonly string[] | "*" | undefined;
  /** Whether options may name RPCs that do not exist, because not all descriptors have been read yet. */
  readonly isIncomplete: boolean;
}

/**
 * A protocol in which clients call RPCs. Everything specific to it is in its folder. To add one, add a folder, a
 * {@link ProtocolName} and an item to the list in `protocols.ts`.
 *
 * A protocol finds a request's target, opens a {@link UnaryWire} or {@link StreamWire} for the call, and responds to
 * requests that never become a call.
 */
export interface Protocol {
  readonly name: ProtocolName;
  /** Whether errors have an HTTP status other than 200. If not, REST responds with 405 to a wrong method. */
  readonly hasHttpStatus: boolean;
  /** Returns the targets for POST requests to an RPC's path, by their normalized content types. */
  targetsOf(rpc: Rpc): Iterable<readonly [contentType: string, target: CallTarget]>;
  /**
   * Returns the target for a GET to an RPC without side effects, or `undefined` if the query names no known
   * format.
   */
  targetOfGet?(rpc: UnaryRpc, query: string): CallTarget | undefined;
  /** Finds a target by a path that is not an RPC's path. Missing if the protocol has no such paths. */
  find?(head: RequestHead, path: string, query: string): CallTarget | BodyTarget | Mismatch | undefined;
  /** The only path of {@link find}, without the prefix, if all protocol requests are POSTs to it. */
  readonly bodyPath?: string;
  /** Returns whether a request without a match should get its response in this protocol. */
  handlesUnmatched(head: RequestHead): boolean;
  /**
   * Responds to a request that never became a call.
   *
   * @throws if the error cannot be written, for example because its details do not serialize; then nothing was sent
   */
  refuse(exchange: Exchange, refusal: Refusal): void;
}

/** The request parts that decide its target. */
export interface RequestHead extends HeaderReader {
  readonly httpMethod: string;
  readonly target: string;
  readonly common: Readonly<CommonHeaderFields>;
  /**
   * Whether literals in REST templates match only as sent, so that middleware in front of the gateway that compares
   * paths sees each path in one form. Default false.
   */
  readonly literalsAsSent?: boolean;
}

/**
 * The RPC that a request calls. The RPC path targets are prepared in advance. A REST target is created per request,
 * because it contains URL parts.
 */
export type CallTarget = UnaryTarget | StreamTarget;

interface AnyTarget {
  readonly protocol: Protocol;
  /** The matched rule's path template, without the gateway's prefix; `undefined` except on REST. */
  readonly pathTemplate: string | undefined;
  /** Returns whether the response depends on the body content for this content type. Defaults to `true`. */
  needsBody?(contentType: string | null): boolean;
}

/** The unary RPC that a request calls. */
export interface UnaryTarget extends AnyTarget {
  readonly kind: "unary";
  readonly rpc: UnaryRpc;
  /** Reads a call header. An error in the header is stored as {@link Wire.problem}. Never throws. */
  open(exchange: Exchange): UnaryWire;
}

/** The streaming RPC that a request calls. */
export interface StreamTarget extends AnyTarget {
  readonly kind: "stream";
  readonly rpc: StreamRpc;
  open(exchange: Exchange): StreamWire;
}

/**
 * A request that names its RPC in its body, as JSON-RPC does. The request may also ask for something other than an RPC.
 *
 * The request is admitted without a procedure. The credential is checked before the body is read. Everything that
 * depends on the RPC starts once the RPC is known. The scope is checked by the function that `admit` has returned, and
 * then the deadline, the request gate and the interceptors follow.
 */
export interface BodyTarget extends AnyTarget {
  readonly kind: "body";
  readonly rpc: undefined;
  /** Reads the header. An error in the header is stored as {@link BodyWire.problem}. Never throws. */
  open(exchange: Exchange): BodyWire;
}

/** Why a path and method match no target. */
export type Mismatch =
  | { readonly kind: "not-found" }
  | { readonly kind: "malformed"; readonly message: string }
  | { readonly kind: "method-not-allowed"; readonly allow: string };

/** The response to a request that does not become a call. */
export interface Refusal {
  readonly error: ConnectError;
  /** The HTTP status; gRPC and gRPC-Web respond with 200 and a gRPC status. */
  readonly httpStatus: number;
  /** Additional header fields, such as Allow. */
  readonly fields: HeaderFields;
  /** The RPC that the path names, if there is one. */
  readonly rpc: Rpc | undefined;
  /** The request's target, or `undefined` if nothing matched. */
  readonly target: CallTarget | undefined;
}

/**
 * Reads one call from its exchange, and writes its response. Each protocol implements this.
 *
 * The header is read when the wire is opened. An error in it is stored as `problem` instead of thrown, because the
 * response's form depends on the remaining header.
 */
export interface Wire {
  /** The client's deadline in milliseconds from now, or `undefined` without one. */
  readonly timeoutMs: number | undefined;
  /** The error that prevents the call, known before the body is read, or `undefined` if there is none. */
  readonly problem: unknown;
  /** How the body is read when the client sends one message, or `undefined` if the body is ignored and not read. */
  readonly body: BodyPlan | undefined;
  /** The request header that the handler sees. */
  readonly requestHeader: LazyHeaders;
  /** The response header and trailer that the handler sees and may extend. */
  readonly responseHeader: LazyHeaders;
  readonly responseTrailer: LazyHeaders;

  /**
   * Reads the message from a client that sends exactly one. Without a body, `body` is empty. Returns a promise only if
   * the message must be decompressed.
   */
  readMessage(body: Uint8Array): Message | Promise<Message>;

  /**
   * Responds with an error, and with the header and trailer that the handler has set. May be called a second time,
   * after {@link disableCompression}, while the first call's promise is pending.
   */
  writeError(error: ConnectError): void | Promise<void>;

  /** Sends the remaining response uncompressed, because its compression failed or timed out. */
  disableCompression?(): void;

  /** Frees the resources for a response that has begun and will not be completed. */
  release?(): void;
}

/** A unary call's wire. */
export interface UnaryWire extends Wire {
  /** Set if its messages are binary, and can be forwarded without being decoded. */
  readonly binary?: BinaryUnaryWire | undefined;
  /** Responds with a message. Throws before anything is sent if the message cannot be written. */
  writeMessage(response: ResponseParts): void | Promise<void>;
}

/**
 * Reads and writes a unary call's messages that are forwarded as bytes. Its methods correspond to the wire's.
 */
export interface BinaryUnaryWire {
  /** Whether the response may consist of message parts, because the caller can detect a truncated message. */
  readonly writesParts?: boolean;
  readEnvelope(body: Uint8Array): Envelope | Promise<Envelope>;
  /**
   * Reads a body with one large envelope in the parts in which it arrives. Returns `undefined` if the start of the body
   * does not announce one. Missing if the bodies have no envelopes.
   *
   * @throws ConnectError `ResourceExhausted` for a length over the limit
   */
  readParts?(start: Uint8Array, rest: AsyncIterable<Uint8Array>): AsyncIterable<ForwardedMessage> | undefined;
  writeEnvelope(message: Envelope, header: Headers, trailer: Headers): void | Promise<void>;
}

/** Reads and writes a streaming call's messages that are forwarded as bytes. */
export interface BinaryStreamWire extends Omit<BinaryUnaryWire, "writeEnvelope"> {
  readEnvelopes(): AsyncIterable<ForwardedMessage>;
  encodeEnvelope(message: ForwardedMessage): Uint8Array | Promise<Uint8Array>;
}

/** The sender for a request whose body names the RPC. */
export interface BodyCaller {
  readonly header: HeaderReader;
  readonly peer: Peer;
  /** The context values that `admit` has set. */
  readonly contextValues: ContextValues;
}

/** A complete response to a body that names no RPC, such as an RPC list. */
export interface BodyReply {
  readonly kind: "reply";
  readonly httpStatus: number;
  readonly fields: HeaderFields;
  /** Absent if the response has no body. */
  readonly body?: Uint8Array;
}

/** Reads the body of a {@link BodyTarget}, and responds with an error if the body is not valid. */
export interface BodyWire extends Pick<Wire, "problem" | "writeError"> {
  readonly body: BodyPlan;
  /**
   * Returns the target if the body calls an RPC, and otherwise the response. Without a body, `body` is empty. The
   * target's wire already has the message, so the wire's `body` is `undefined`.
   *
   * @throws ConnectError for a body that is not valid or names an unknown RPC
   */
  readTarget(body: Uint8Array, caller: BodyCaller): CallTarget | BodyReply;
}

/** A streaming client's messages. */
export interface RequestMessages extends AsyncIterable<Message> {
  /** Frees resources when the call has ended, because its handler may never read the rest. */
  close?(): void;
}

/**
 * A streaming call's wire.
 *
 * A response is written by {@link begin}, {@link write} … and {@link end}, or by {@link respond} alone.
 */
export interface StreamWire extends Wire {
  /** Set if its messages are binary, and can be forwarded without being decoded. */
  readonly binary?: BinaryStreamWire | undefined;
  /** Bytes to send when the call has been idle for a while, or `undefined` for none. */
  readonly heartbeat?: Uint8Array | undefined;
  /**
   * Whether an error before the first message is reported when the response ends. If not, the header section is
   * delayed until the first message or error, because an error changes the HTTP status.
   */
  readonly reportsErrorAtEnd: boolean;
  /** Whether a server stream's header section is sent alone if the first message is late. */
  readonly sendsHeaderEarly?: boolean;
  /**
   * Why the response ends before its messages do: it is only a header section, as for HEAD (RFC 9110 §9.3.2), or the
   * messages exceed a protocol limit. Read after {@link encode} and {@link headerToSend}.
   */
  readonly earlyEnd?: "complete" | ConnectError | undefined;

  /** Reads a streaming client's messages as they arrive. */
  readMessages(): RequestMessages;

  /** Encodes a message for the body. Throws if it cannot be written. */
  encode(message: Message): Uint8Array | Promise<Uint8Array>;

  /** Returns the response's header section, including the fields that the handler has set. */
  headerToSend(header: Headers): HeaderFields;

  /** Sends the header section, before the first messages. */
  begin(header: HeaderFields): void;

  /**
   * Sends encoded messages. Under backpressure, returns a promise that resolves when more may be sent or the client has
   * disconnected, and rejects if compression fails.
   */
  write(bytes: Uint8Array): void | Promise<void>;

  /**
   * Ends the response, with an error or successfully. Returns a promise if the end must be compressed. Like {@link
   * respond}'s promise, it rejects if compression fails. The response has then not ended.
   */
  end(trailer: Headers, error: ConnectError | undefined): void | Promise<void>;

  /** Sends a complete response. May be called again, with an error, while the promise is pending. */
  respond(
    header: HeaderFields,
    bytes: Uint8Array,
    trailer: Headers,
    error: ConnectError | undefined,
  ): void | Promise<void>;
}
