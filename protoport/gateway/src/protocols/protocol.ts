import type { Message, Registry } from "@bufbuild/protobuf";
import type { ConnectError, ContextValues } from "@connectrpc/connect";
import type { BodyPlan, CommonHeaderFields, Exchange, HeaderFields, HeaderReader, Peer } from "../http/index.ts";
import type { Content, ForwardedMessage, Take } from "./envelope/envelope.ts";
import type { ProtocolName } from "./hooks.ts";
import type { LazyHeaders } from "./lazy-headers.ts";
import type { ErrorRecordWriter, RestRoutes } from "./rest/rules/index.ts";
import type { Rpc } from "./rpc.ts";

/** The inputs for creating a gateway's protocols. */
export interface ProtocolParts {
  readonly rpcs: readonly Rpc[];
  readonly restRoutes: RestRoutes;
  readonly writeErrorRecord: ErrorRecordWriter;
  /** The types that messages and error details in JSON may name. */
  readonly registry: Registry;
  /** The origins in the CORS options, whose pages may call RPCs, or `undefined` if CORS is off. */
  readonly corsOrigins: readonly string[] | "*" | undefined;
  /** Whether options may name RPCs that do not exist, because not all descriptors have been read yet. */
  readonly isIncomplete: boolean;
}

/**
 * A protocol in which clients call RPCs. All code for one protocol is in the protocol's folder. To add a protocol, add
 * a folder, a {@link ProtocolName} and an item to the list in `protocols.ts`.
 *
 * A protocol finds a request's target, opens a {@link Wire} for the call, and an {@link ErrorWire} for
 * a request that matches no RPC.
 */
export interface Protocol {
  readonly name: ProtocolName;
  /** Whether errors have an HTTP status other than 200. REST responds with 405 for protocols without HTTP statuses. */
  readonly hasHttpStatus: boolean;
  /** Returns the targets for POST requests to an RPC's path, by their normalized content types. */
  targetsOf(rpc: Rpc): Iterable<readonly [contentType: string, target: CallTarget]>;
  /** Returns the target for a GET, or `undefined` if the query names no known format. The RPC has no side effects. */
  targetOfGet?(rpc: Rpc, query: string): CallTarget | undefined;
  /** Finds a target by a path that is not an RPC's path. Missing if the protocol has only RPC paths. */
  find?(head: RequestHead, path: string, query: string): CallTarget | BodyTarget | Mismatch | undefined;
  /** The path without the prefix, if all requests in this protocol are POSTs to one path. */
  readonly bodyPath?: string;
  /** Returns whether this protocol writes the response to a request that matches no target. */
  handlesUnmatched(head: RequestHead): boolean;
  /**
   * Opens the wire for the error of a request that is not a call, for example because the path is unknown. gRPC and
   * gRPC-Web respond with 200 and a gRPC status.
   *
   * @param fields - additional header fields, such as Allow
   * @param rpc - the RPC that the path names, or `undefined` if the path names no RPC
   */
  openError(exchange: Exchange, fields: HeaderFields, rpc: Rpc | undefined): ErrorWire;
}

/** The method, path and header fields that determine a request's target. */
export interface RequestHead extends HeaderReader {
  readonly httpMethod: string;
  readonly target: string;
  readonly common: Readonly<CommonHeaderFields>;
  /** Whether literals in REST templates match only one spelling, for middleware that compares paths. Default false. */
  readonly literalsAsSent?: boolean;
}

/** The RPC that a request calls. A REST target contains the path variables, so one is created per request. */
export interface CallTarget {
  readonly kind: Rpc["kind"];
  readonly protocol: Protocol;
  readonly rpc: Rpc;
  /** The matched rule's path template, without the gateway's prefix; `undefined` except on REST. */
  readonly pathTemplate: string | undefined;
  /** Returns whether the response to a body with this content type depends on the body. Defaults to `true`. */
  needsBody?(contentType: string | null): boolean;
  /**
   * Reads the header of a call, and never throws. An error in the header is stored as {@link Wire.problem}. The wire of
   * a stream is a {@link StreamWire}.
   */
  open(exchange: Exchange): Wire;
}

/**
 * A request that names its RPC in its body, as JSON-RPC does. The request may also ask for something other than an RPC.
 *
 * The credential is checked, without a procedure, before the body is read. Once the RPC is known, the function that
 * `admit` has returned checks the scope. The deadline, the request gate and the interceptors follow.
 */
export interface BodyTarget extends Pick<CallTarget, "protocol" | "pathTemplate" | "needsBody"> {
  readonly kind: "body";
  readonly rpc: undefined;
  /** Reads the header of a call, and never throws. An error in the header is stored as {@link BodyWire.problem}. */
  open(exchange: Exchange): BodyWire;
}

/** Why a path and method match no target. */
export type Mismatch =
  | { readonly kind: "not-found" }
  | { readonly kind: "malformed"; readonly message: string }
  | { readonly kind: "method-not-allowed"; readonly allow: string };

/** Writes an error as a response. The wire of a call does this, and for other requests {@link Protocol.openError}. */
export interface ErrorWire {
  /**
   * Responds with an error, and with the header and trailer that the handler has set. May be called again, even while
   * the first promise is pending.
   *
   * @param mayCompress - `false` after a failed or slow compression
   */
  writeError(error: ConnectError, mayCompress: boolean): void | Promise<void>;
}

/**
 * Reads one call from an exchange, and writes the response. Each protocol implements `Wire`.
 *
 * The header is read when the wire is opened. An error in the header is stored as `problem` instead of thrown, because
 * the response format depends on other header fields.
 */
export interface Wire extends ErrorWire {
  /** The client's deadline in milliseconds from now, or `undefined` without one. */
  readonly timeoutMs: number | undefined;
  /** The error that prevents the call, or `undefined` without one. Known before the body is read. */
  readonly problem: unknown;
  /** The plan for reading a body with one message, or `undefined` if the body is ignored and not read. */
  readonly body: BodyPlan | undefined;
  /**
   * What the wire can write. With `"messages"`, only messages. With `"envelopes"`, also envelopes, because the client's
   * format is binary. With `"parts"`, also the parts of a large envelope, because the client detects a truncated message.
   */
  readonly carries: "messages" | "envelopes" | "parts";
  readonly requestHeader: LazyHeaders;
  /** The response header and trailer that the handler sees and may extend. */
  readonly responseHeader: LazyHeaders;
  readonly responseTrailer: LazyHeaders;

  /**
   * Reads the only message. Without a body, `body` is empty. Returns a promise only if the message is compressed.
   *
   * @param take - converts the envelope of a binary message. Other messages are decoded by the wire
   */
  read<T>(body: Uint8Array, take: Take<T>): Message | T | Promise<Message | T>;
  /**
   * Reads a body with one large envelope in parts, as the body arrives. Returns `undefined` if the start of the body
   * does not announce a large envelope.
   *
   * @throws ConnectError `ResourceExhausted` for a length over the limit
   */
  readParts(start: Uint8Array, rest: AsyncIterable<Uint8Array>): AsyncIterable<ForwardedMessage> | undefined;
  /** Responds with a message. Throws if the message cannot be written, before anything is sent. */
  write(message: Content, header: Headers, trailer: Headers): void | Promise<void>;
  /** Frees the resources for a response that has begun and will not be completed. */
  release(): void;
}

/** The sender of a request with a body that names the RPC. */
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
export interface BodyWire extends ErrorWire, Pick<Wire, "problem" | "release"> {
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
export interface RequestMessages<T = Message> extends AsyncIterable<T> {
  /** Frees resources when the call has ended. The call's handler may never read the remaining messages. */
  close?(): void;
}

/** How a wire writes a stream. */
export interface StreamTraits {
  /** Bytes that keep an idle call's connection open, or `undefined` if the protocol has none. */
  readonly heartbeat: Uint8Array | undefined;
  /**
   * Whether an error before the first message is reported at the end of the response. Otherwise, the HTTP status
   * reports the error, so the header section is delayed until the first message or error.
   */
  readonly reportsErrorAtEnd: boolean;
  /** Whether a server stream sends its header section without waiting for a late first message. */
  readonly sendsHeaderEarly: boolean;
}

/**
 * A streaming call's wire. A response is written by calls to {@link begin}, {@link send} and {@link end}, or by one call
 * to {@link respond}.
 */
export interface StreamWire extends Wire {
  readonly traits: StreamTraits;
  /**
   * Ends the response early: `"complete"` if the response has no body, as for HEAD (RFC 9110 §9.3.2), or the error if
   * messages exceed a protocol limit. Read after {@link encode} and {@link headerToSend}.
   */
  readonly earlyEnd: "complete" | ConnectError | undefined;

  /**
   * Reads the messages as they arrive.
   *
   * @param takePart - converts a part of a large envelope. Without `takePart`, large envelopes are read completely
   */
  readAll<T>(take: Take<T>, takePart?: (part: Uint8Array) => T): RequestMessages<Message | T>;

  /** Encodes a message, or a part of a large envelope, for the body. Throws if the message cannot be written. */
  encode(message: Content | Uint8Array): Uint8Array | Promise<Uint8Array>;

  /** Returns the response's header section, including the fields that the handler has set. */
  headerToSend(header: Headers): HeaderFields;

  /** Sends the header section, before the first messages. */
  begin(header: HeaderFields): void;

  /**
   * Sends encoded messages. Under backpressure, returns a promise that resolves when more messages may be sent or the
   * client disconnects. The promise rejects if compression fails.
   */
  send(bytes: Uint8Array): void | Promise<void>;

  /**
   * Ends the response, with an error or successfully. Returns a promise if the last bytes must be compressed. If the
   * compression fails, the promise rejects, and the response has not ended. This also applies to {@link respond}.
   */
  end(trailer: Headers, error: ConnectError | undefined): void | Promise<void>;

  /** Sends a complete response. While the promise is pending, `respond` may be called again with an error. */
  respond(
    header: HeaderFields,
    bytes: Uint8Array,
    trailer: Headers,
    error: ConnectError | undefined,
    mayCompress: boolean,
  ): void | Promise<void>;
}

/** Creates a target for an RPC. All calls to an RPC's path share one target. */
export function createTarget(
  protocol: Protocol,
  rpc: Rpc,
  open: (exchange: Exchange) => StreamWire,
  pathTemplate?: string,
): CallTarget {
  return { kind: rpc.kind, protocol, rpc, pathTemplate, open };
}
