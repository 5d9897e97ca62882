import type { Message } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import type { BodyPlan, CommonHeaderFields, Exchange, HeaderFields } from "../exchange/index.ts";
import type { ErrorRecordWriter, RestRoutes } from "./rest/rules/index.ts";
import type { LazyHeaders } from "./shared/lazy-headers.ts";
import type { ResponseParts, Rpc, StreamRpc, UnaryRpc } from "./rpc.ts";

/** What the protocols of a gateway are created from. */
export interface ProtocolParts {
  readonly rpcs: readonly Rpc[];
  readonly restRoutes: RestRoutes;
  readonly writeErrorRecord: ErrorRecordWriter;
}

/**
 * The name of a protocol, as hooks, logs and metrics see it. Whatever differs by protocol outside its folder is a
 * `Record<ProtocolName, …>`, which does not compile without a new name.
 */
export type ProtocolName = "connect" | "grpc" | "grpc-web" | "rest";

/**
 * A protocol in which clients call RPCs. Everything the gateway knows about it is in its folder; a new one is a folder, a
 * {@link ProtocolName} and an item of the list in `protocols.ts`.
 *
 * A protocol finds what a request asks for, opens a {@link UnaryWire} or {@link StreamWire} for the call, and responds to
 * requests that never become a call.
 */
export interface Protocol {
  readonly name: ProtocolName;
  /** Whether errors have an HTTP status other than 200. If not, REST responds to a wrong method, with 405. */
  readonly hasHttpStatus: boolean;
  /** Returns the targets of POST requests to the path of an RPC, by their content types in normal form. */
  targetsOf(rpc: Rpc): Iterable<readonly [contentType: string, target: CallTarget]>;
  /** Returns the target of a GET to the path of an RPC without side effects; `undefined` if the query names none. */
  targetOfGet?(rpc: UnaryRpc, query: string): CallTarget | undefined;
  /** Finds a target by a path that is not the path of an RPC; `undefined` if the protocol has no such paths. */
  find?(head: RequestHead, path: string, query: string): CallTarget | BodyTarget | Mismatch | undefined;
  /** Returns whether a request that matched nothing should be answered in this protocol. */
  claims(head: RequestHead): boolean;
  /**
   * Responds to a request that never became a call.
   *
   * @throws the reason why the error cannot be written, for example details that do not serialize; then nothing was sent
   */
  refuse(exchange: Exchange, refusal: Refusal): void;
}

/** The parts of a request that decide what it asks for. */
export interface RequestHead {
  readonly httpMethod: string;
  readonly target: string;
  readonly common: Readonly<CommonHeaderFields>;
}

/** An RPC as a request asks for it. Prepared in advance for RPC paths; on REST created per request, with its URL. */
export type CallTarget = UnaryTarget | StreamTarget;

interface AnyTarget {
  readonly protocol: Protocol;
  /** The path template of the rule that matched, without the prefix of the gateway; `undefined` for other protocols. */
  readonly pathTemplate: string | undefined;
  /** Returns whether the response depends on the content of a body of this content type. Default: it does. */
  needsBody?(contentType: string | null): boolean;
}

/** A unary RPC as a request asks for it. */
export interface UnaryTarget extends AnyTarget {
  readonly kind: "unary";
  readonly rpc: UnaryRpc;
  /** Reads the header of a call, and stores an error in it as {@link Wire.problem}. Never throws. */
  open(exchange: Exchange): UnaryWire;
}

/** A streaming RPC as a request asks for it. */
export interface StreamTarget extends AnyTarget {
  readonly kind: "stream";
  readonly rpc: StreamRpc;
  open(exchange: Exchange): StreamWire;
}

/**
 * A request that names its RPC in its body, as JSON-RPC does.
 *
 * It is admitted without a procedure: the credential is checked before the body is read. Everything that depends on the
 * RPC begins once it is named: the deadline, the request gate, and the interceptors, which must check the scope.
 */
export interface BodyTarget extends AnyTarget {
  readonly kind: "body";
  readonly rpc: undefined;
  /** Reads the header, and stores an error in it as {@link BodyWire.problem}. Never throws. */
  open(exchange: Exchange): BodyWire;
}

/** Why a path and method have no target. */
export type Mismatch =
  | { readonly kind: "not-found" }
  | { readonly kind: "malformed"; readonly message: string }
  | { readonly kind: "method-not-allowed"; readonly allow: string };

/** Why a request does not become a call. */
export interface Refusal {
  readonly error: ConnectError;
  /** The HTTP status; gRPC and gRPC-Web respond with 200 and a status of their own. */
  readonly httpStatus: number;
  /** Further header fields, such as Allow. */
  readonly fields: HeaderFields;
  /** The RPC that the path names, if there is one. */
  readonly rpc: Rpc | undefined;
  /** What the request asks for; `undefined` if nothing matched. */
  readonly target: CallTarget | undefined;
}

/**
 * Reads one call from its exchange, and writes its response. Each protocol has classes of this shape.
 *
 * The header is read when the wire is opened. An error in it is stored as `problem` instead of thrown, because the form of
 * the response depends on the rest of the header.
 */
export interface Wire {
  /** The client's deadline in milliseconds from now; `undefined` without one. */
  readonly timeoutMs: number | undefined;
  /** The error for which the call cannot be served, known before the body is read; `undefined` if there is none. */
  readonly problem: unknown;
  /** How the body is read when the client sends one message; `undefined` if it has no meaning, and is left unread. */
  readonly body: BodyPlan | undefined;
  /** The request header that the handler sees. */
  readonly requestHeader: LazyHeaders;
  /** The response header and trailer that the handler sees, and may add to. */
  readonly responseHeader: LazyHeaders;
  readonly responseTrailer: LazyHeaders;

  /**
   * Reads the message of a client that sends only one; the body is empty if there is none. Returns a promise only if
   * something must be decompressed.
   */
  readMessage(body: Uint8Array): Message | Promise<Message>;

  /**
   * Responds with an error, and with the header and trailer as the handler left them. May be called a second time, after
   * {@link giveUpCoding}, while its promise has not resolved.
   */
  writeError(error: ConnectError): void | Promise<void>;

  /** Sends the rest of the response uncompressed, because its compression has failed or takes too long. */
  giveUpCoding?(): void;

  /** Frees what is held for a response that has begun and will not end. */
  release?(): void;
}

/** The wire of a unary call. */
export interface UnaryWire extends Wire {
  /** Responds with a message. Throws, before anything is sent, if it cannot be written. */
  writeMessage(response: ResponseParts): void | Promise<void>;
}

/** Reads the body of a {@link BodyTarget}, and responds with an error if it names no RPC. */
export interface BodyWire extends Pick<Wire, "problem" | "writeError"> {
  readonly body: BodyPlan;
  /**
   * Returns the call that a body asks for; the body is empty if there is none. The wire of that call has the message, and
   * no `body`.
   *
   * @throws ConnectError for a body that names no RPC
   */
  readTarget(body: Uint8Array): UnaryTarget;
}

/** The messages of a client that streams. */
export interface RequestMessages extends AsyncIterable<Message> {
  /** Frees what reading them holds, because the call has ended. Its handler may never read on. */
  close?(): void;
}

/**
 * The wire of a streaming call.
 *
 * A response is written by {@link begin}, {@link write} … and {@link end}, or by {@link answer} alone.
 */
export interface StreamWire extends Wire {
  /** Bytes to send when the call has sent nothing for a while; `undefined` for none. */
  readonly heartbeat?: Uint8Array | undefined;
  /**
   * Whether the end of a response reports an error that comes before its first message. If not, the header section waits
   * for one of the two, because the error has an HTTP status.
   */
  readonly endHasError: boolean;
  /** Whether the header of a server stream is sent alone when its first message takes long. */
  readonly beginsQuietly?: boolean;
  /** Whether the response is its header section alone, as it is to HEAD (RFC 9110 §9.3.2). */
  readonly headOnly?: boolean;

  /** Reads the messages of a client that streams, as they arrive. */
  readMessages(): RequestMessages;

  /** Encodes a message for the body. Throws if it cannot be written. */
  encode(message: Message): Uint8Array | Promise<Uint8Array>;

  /** Returns the header section of the response, with what the handler has set. */
  headerToSend(header: Headers): HeaderFields;

  /** Sends the header section, before the first messages. */
  begin(header: HeaderFields): void;

  /**
   * Sends encoded messages. Returns a promise if the client must first accept what was sent; it resolves when more may be
   * sent, or the client has gone away, and rejects if something cannot be compressed.
   */
  write(bytes: Uint8Array): void | Promise<void>;

  /**
   * Ends the response, with an error or as a success. Returns a promise if the end must first be compressed; like
   * {@link answer}, it rejects if that fails, and then the client still waits.
   */
  end(trailer: Headers, error: ConnectError | undefined): void | Promise<void>;

  /** Sends a complete response. May be called again, with an error, while its promise has not resolved. */
  answer(
    header: HeaderFields,
    bytes: Uint8Array,
    trailer: Headers,
    error: ConnectError | undefined,
  ): void | Promise<void>;
}
