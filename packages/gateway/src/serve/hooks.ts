import type { ConnectError, ContextValues } from "@connectrpc/connect";
import type { Exchange, HeaderReader, Peer } from "../exchange/index.ts";
import type { ProtocolName } from "../protocols/index.ts";

/** What a gateway knows of a request. Each hook sees a part of it. */
export interface RequestView {
  /** `/package.Service/Method` of the RPC that is called; `undefined` if the request matched none. */
  readonly procedure: string | undefined;
  readonly protocol: ProtocolName;
  readonly httpMethod: string;
  /** Path and query as sent. */
  readonly target: string;
  /** The request target without its query. */
  readonly path: string;
  /** The path template of the matched rule, or the path of the endpoint, with the prefix; otherwise `undefined`. */
  readonly httpRoute: string | undefined;
  /** `undefined` over Fetch, which does not expose it. */
  readonly httpVersion: Exchange["httpVersion"];
  readonly scheme: "http" | "https";
  readonly header: HeaderReader;
  /** The `Authorization` field (RFC 9110 §11.6.2); `null` when there is none, several joined by ", ". */
  readonly authorization: string | null;
  /** The `X-Request-Id` field, as the client or a proxy sent it; `null` when there is none. */
  readonly xRequestId: string | null;
  /** The `X-Request-Id` of the response, or else of the request: up to 128 characters of printable ASCII. */
  readonly requestId: string | undefined;
  /** Whether the RPC has a stream in at least one direction, so that its response may fail after it has begun. */
  readonly stream: boolean;
  /** The sender of the request: the client that trusted proxies name, otherwise the other end of the connection. */
  readonly peer: Peer;
  /** Scheme and authority that the client used, from trusted proxies if they name them: `https://orders.example`. */
  readonly origin: string;
  /**
   * Stands for the connection: the same object for all its requests, and nothing else. Use it as a key of a WeakMap to
   * remember something for as long as the connection lasts.
   */
  readonly connection: object;
  /**
   * Whether another server has taken the request and passed it on to `handler` or `fetch`. If so, what its asynchronous
   * context holds during `onRequest` belongs to this request.
   */
  readonly isMounted: boolean;
  /** The context values that the interceptors and the handler of this request see. */
  readonly contextValues: ContextValues;
}

/** Everything known about a request before a byte of its body is read. */
export interface AdmitRequest extends Pick<
  RequestView,
  | "procedure"
  | "protocol"
  | "httpMethod"
  | "httpRoute"
  | "header"
  | "authorization"
  | "xRequestId"
  | "stream"
  | "peer"
  | "origin"
  | "connection"
  | "isMounted"
  | "contextValues"
> {
  /**
   * Adds a header field to the response, whether it is a message or an error. Has no effect once the header is sent, nor
   * for what the gateway itself writes about content and connection, such as `Content-Type`, `Content-Length` and `Date`.
   * A name or value that HTTP does not allow makes the response a fault (RFC 9110 §5.5).
   */
  addToAnswer(name: string, value: string): void;
}

/**
 * Decides on a request by its header alone. Runs exactly once per request, before anything is answered and before a
 * byte of the body is read or decompressed.
 *
 * Return to admit the request. Throw a `ConnectError` to refuse it; its metadata become response headers (trailers in
 * the gRPC protocols). Anything else that is thrown is answered as `Internal`.
 */
export type Admit = (request: AdmitRequest) => void | Promise<void>;

/** One request after its response, for logs and metrics. Cannot be spread, because most members are getters. */
export interface AnsweredRequest extends Pick<
  RequestView,
  "procedure" | "protocol" | "httpMethod" | "path" | "httpRoute" | "httpVersion" | "scheme" | "contextValues" | "peer"
> {
  /** 0 when nothing was sent: the client went away, or the response could not be written, as `error` says. */
  readonly httpStatus: number;
  /** The error in the response; `undefined` on success. */
  readonly error: ConnectError | undefined;
  readonly durationMs: number;
}

/**
 * A request for which something on the server's side has failed. Without its credential and its body: a log may print
 * all of it.
 */
export interface FaultyRequest extends Pick<RequestView, "procedure" | "requestId" | "contextValues"> {}
