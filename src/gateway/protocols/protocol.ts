import type { Message } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import type { BodyHints, CommonHeaderFields, Exchange, HeaderFields } from "../carriers/index.ts";
import type { LazyHeaders } from "./lazy-headers.ts";
import type { ErrorRecordWriter, RestRoutes } from "../rest/index.ts";
import type { Rpc, ResponseParts, StreamRpc, UnaryRpc } from "./rpc.ts";

/** What the protocols of a gateway are made of. */
export interface ProtocolParts {
  readonly rpcs: readonly Rpc[];
  readonly restRoutes: RestRoutes;
  readonly writeErrorRecord: ErrorRecordWriter;
}

/** The name of a protocol, as hooks, logs and metrics see it. */
export type ProtocolName = "connect" | "grpc" | "grpc-web" | "rest";

/**
 * A protocol in which clients call RPCs. All that the gateway knows of one stands in its file or folder; a new one is
 * added by a file and a row in `protocols.ts`.
 *
 * A protocol finds what a request asks for, opens a {@link UnaryWire} or {@link StreamWire} that reads and answers the
 * call, and answers requests that never become a call.
 */
export interface Protocol {
  readonly name: ProtocolName;
  /** Whether its errors have an HTTP status of their own, rather than 200. Without, a wrong method is REST's to answer. */
  readonly hasHttpStatus: boolean;
  /** Returns the targets of POST requests at the path of an RPC, by their content types as the protocol spells them. */
  targetsOf(rpc: Rpc): Iterable<readonly [contentType: string, target: CallTarget]>;
  /** Returns the target of a GET at the path of an RPC that has no side effects; `undefined` if the query names none. */
  targetOfGet?(rpc: UnaryRpc, query: string): CallTarget | undefined;
  /** Finds a target by a path that is not the path of an RPC; `undefined` if the protocol has no other paths. */
  find?(head: RequestHead, path: string, query: string): CallTarget | Mismatch | undefined;
  /** Returns whether a request that asks for nothing known is to be answered in this protocol. */
  claims(head: RequestHead): boolean;
  /**
   * Answers a request that never became a call.
   *
   * @throws whatever keeps the error from being written, for example details that do not serialize; then nothing was sent
   */
  refuse(exchange: Exchange, refusal: Refusal): void;
}

/** The parts of a request that decide what it asks for. */
export interface RequestHead {
  readonly httpMethod: string;
  readonly target: string;
  readonly common: Readonly<CommonHeaderFields>;
}

/** An RPC as a request asks for it, with what its URL and content type say about the call. */
export type CallTarget = UnaryTarget | StreamTarget;

interface AnyTarget {
  readonly protocol: Protocol;
  /** The path template of the rule that matched, without the prefix of the gateway; `undefined` for other protocols. */
  readonly pathTemplate: string | undefined;
  /** Returns whether the answer depends on what is in a body of this content type. Default: it does. */
  needsBody?(contentType: string | null): boolean;
}

/** A unary RPC as a request asks for it. */
export interface UnaryTarget extends AnyTarget {
  readonly kind: "unary";
  readonly rpc: UnaryRpc;
  /** Reads the header of a call, whose mistakes are kept as {@link Wire.problem}. Never throws. */
  open(exchange: Exchange): UnaryWire;
}

/** A streaming RPC as a request asks for it. */
export interface StreamTarget extends AnyTarget {
  readonly kind: "stream";
  readonly rpc: StreamRpc;
  open(exchange: Exchange): StreamWire;
}

/** Why a path and method have no target. */
export type Mismatch =
  | { readonly kind: "not-found" }
  | { readonly kind: "malformed"; readonly message: string }
  | { readonly kind: "method-not-allowed"; readonly allow: string };

/** Why a request does not become a call. */
export interface Refusal {
  readonly error: ConnectError;
  /** The HTTP status; gRPC and gRPC-Web answer 200 with a status of their own. */
  readonly httpStatus: number;
  /** Further header fields, such as Allow. */
  readonly fields: HeaderFields;
  /** The RPC that was asked for, if there is one. */
  readonly rpc: Rpc | undefined;
  /** What the request asks for; `undefined` if nothing matched. */
  readonly target: CallTarget | undefined;
}

/**
 * Reads one call from its exchange and answers it. Each protocol has classes of this shape: to know one is to know all.
 *
 * The header is read when it is opened. A mistake in it is kept as `problem` instead of thrown, because the answer to it
 * depends on the rest of the header.
 */
export interface Wire extends BodyHints {
  /** The client's deadline in milliseconds from now; `undefined` without one. */
  readonly timeoutMs: number | undefined;
  /** The error for which the call cannot be served, known before the body is read; `undefined` if there is none. */
  readonly problem: unknown;
  /** Whether a body that the request may have means nothing, and is left unread. */
  readonly ignoresBody?: boolean;
  /** The longest body that can hold an acceptable message, if the client sends only one. */
  readonly bodyLimitBytes: number;
  /** The request header that the handler sees. */
  readonly requestHeader: LazyHeaders;
  /** The response header and trailer that the handler sees, and may add to. */
  readonly responseHeader: LazyHeaders;
  readonly responseTrailer: LazyHeaders;

  /**
   * Reads the message of a client that sends only one; the body is empty where there is none. Returns a promise only if
   * something must be decompressed.
   */
  readMessage(body: Uint8Array): Message | Promise<Message>;

  /**
   * Answers with an error, and with the header and trailer as the handler left them. May be called once more, after
   * {@link giveUpCoding}, while its promise has not resolved.
   */
  writeError(error: ConnectError): void | Promise<void>;

  /** Sends what is answered next without a content coding: that of an answer has failed, or takes too long. */
  giveUpCoding?(): void;

  /** Frees what is held for an answer that has begun and will not end. */
  release?(): void;
}

/** Reads one unary call from its exchange and answers it. */
export interface UnaryWire extends Wire {
  /** Answers with a message. Throws, before anything is sent, if it cannot be written. */
  writeMessage(response: ResponseParts): void | Promise<void>;
}

/** The messages of a client that streams. */
export interface RequestMessages extends AsyncIterable<Message> {
  /** Frees what reading them holds, because the call has ended. Its handler may never read on. */
  close?(): void;
}

/**
 * Reads one streaming call from its exchange and answers it.
 *
 * Answered by {@link begin}, {@link write} … and {@link end}, or by {@link answer} alone.
 */
export interface StreamWire extends Wire {
  /** Bytes to send when the call has sent nothing for a while; `undefined` for none. */
  readonly heartbeat?: Uint8Array | undefined;
  /** Whether the header of a server stream is sent alone when its first message is long in coming. */
  readonly beginsQuietly?: boolean;
  /** Whether the answer is its header section alone, as it is to HEAD (RFC 9110 §9.3.2). */
  readonly headOnly?: boolean;

  /** Reads the messages of a client that streams, as they arrive. */
  readMessages(): RequestMessages;

  /** Encodes a message for the body. Throws if it cannot be written. */
  encode(message: Message): Uint8Array | Promise<Uint8Array>;

  /** Returns the header section of the answer, with what the handler has set. */
  headerToSend(header: Headers): HeaderFields;

  /** Sends the header section, before the first messages. */
  begin(header: HeaderFields): void;

  /**
   * Sends encoded messages. Returns a promise if the client must first take what was sent; it resolves when more may be
   * sent, or the client has gone away, and rejects if something cannot be compressed.
   */
  write(bytes: Uint8Array): void | Promise<void>;

  /**
   * Ends the answer, with an error or as a success. Returns a promise if the end must first be compressed; like
   * {@link answer}, it rejects if that fails, and then the client still waits.
   */
  end(trailer: Headers, error: ConnectError | undefined): void | Promise<void>;

  /** Answers in one go. May be called again, with an error, while its promise has not resolved. */
  answer(
    header: HeaderFields,
    bytes: Uint8Array,
    trailer: Headers,
    error: ConnectError | undefined,
  ): void | Promise<void>;
}
