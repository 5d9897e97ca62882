import type { DescMethod } from "@bufbuild/protobuf";
import type { ConnectError, ContextValues } from "@connectrpc/connect";
import type { Exchange, HeaderReader, Peer } from "../http/index.ts";

/** A request's properties. Each hook gets some of these properties. */
export interface RequestView {
  /** `/package.Service/Method` of the called RPC, or `undefined` if the request matched none. */
  readonly procedure: string | undefined;
  /** The called RPC's descriptor. `undefined` if the request matched none, or if the body names the RPC. */
  readonly descriptor: DescMethod | undefined;
  readonly protocol: ProtocolName;
  readonly httpMethod: string;
  /** The request target, with path and query as sent. */
  readonly target: string;
  /** The request target without its query. */
  readonly path: string;
  /** The matched rule's path template, or the endpoint's path, with the prefix. `undefined` if neither matched. */
  readonly httpRoute: string | undefined;
  /** The HTTP version, or `undefined` over Fetch, which does not expose the version. */
  readonly httpVersion: Exchange["httpVersion"];
  readonly scheme: "http" | "https";
  readonly header: HeaderReader;
  /** The `Authorization` field (RFC 9110 §11.6.2), or `null` without one. Several fields are joined with ", ". */
  readonly authorization: string | null;
  /** The `X-Request-Id` field as sent by the client or a proxy, or `null` without one. */
  readonly xRequestId: string | null;
  /** The response's `X-Request-Id`, or otherwise the request's. Has up to 128 printable ASCII characters. */
  readonly requestId: string | undefined;
  /** Whether the RPC has a stream in at least one direction. A streaming RPC may fail after its response has begun. */
  readonly stream: boolean;
  /** The request's sender, which is the client that trusted proxies report, or otherwise the connection's peer. */
  readonly peer: Peer;
  /** The scheme and authority that the client used, or that trusted proxies report: `https://orders.example`. */
  readonly origin: string;
  /**
   * Identifies the connection. All requests on a connection have the same empty object. Use the object as a key of a
   * WeakMap to store data for as long as the connection is open.
   */
  readonly connection: object;
  /**
   * Whether another server has accepted the request and passed it on to `handler` or `fetch`. For a mounted gateway,
   * `onRequest` runs in an async context that belongs to the request.
   */
  readonly isMounted: boolean;
  /** The context values that this request's interceptors and handler see. */
  readonly contextValues: ContextValues;
}

/** A request before a byte of its body is read. */
export interface AdmitRequest extends Pick<
  RequestView,
  | "procedure"
  | "descriptor"
  | "protocol"
  | "httpMethod"
  | "path"
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
   * Adds a header field to the response, whether the response is a message or an error. Calls after the header was sent
   * have no effect. The gateway ignores fields that it sets itself, such as `Content-Type`, `Content-Length` and
   * `Date`. A field that HTTP does not allow (RFC 9110 §5.5) is not sent, and reported to `onFault`.
   */
  addResponseHeader(name: string, value: string): void;
}

/**
 * Admits or refuses a request by its header. Called exactly once per request, before any response and before a byte of
 * the body is read or decompressed, except for CORS preflights and refused cross-site requests. The `procedure` is
 * `undefined` if the body names the procedure, as in MCP.
 *
 * Return nothing to admit the request, or return an {@link AdmitProcedure} that also checks the procedure. Throw a
 * `ConnectError` to refuse the request. The error's metadata become response headers (trailers in the gRPC protocols).
 * Any other thrown value results in `Internal`.
 */
export type Admit = ((request: AdmitRequest) => void | AdmitProcedure | Promise<void | AdmitProcedure>) & {
  /** Called at start with each RPC. Throws an error if the function ignores what the RPC's definition requires. */
  readonly requireChecked?: ((this: void, method: DescMethod) => void) | undefined;
};

/**
 * Admits or refuses the procedure (`/package.Service/Method`) of an admitted request, for example by its caller's
 * scopes. Called once, as soon as the path or the body has named the procedure, and before the message is decoded. Not
 * called for requests without a procedure.
 *
 * Throw to refuse the call, as in {@link Admit}.
 */
export type AdmitProcedure = (procedure: string, descriptor?: DescMethod) => void | Promise<void>;

/** A request after its response, for logs and metrics. Cannot be spread, because most members are getters. */
export interface CompletedRequest extends Pick<
  RequestView,
  "procedure" | "protocol" | "httpMethod" | "path" | "httpRoute" | "httpVersion" | "scheme" | "contextValues" | "peer"
> {
  /** The HTTP status, or 0 if the client disconnected or the response could not be written. `error` has the reason. */
  readonly httpStatus: number;
  /** The error in the response, or `undefined` on success. */
  readonly error: ConnectError | undefined;
  readonly durationMs: number;
}

/** A request that failed on the server's side. Has no credential and no body, because logs may print all members. */
export interface FailedRequest extends Pick<RequestView, "procedure" | "requestId" | "contextValues"> {}

/**
 * A protocol's name in hooks, logs and metrics. Outside the protocols' folders, code that differs per protocol uses a
 * `Record<ProtocolName, …>`. A new protocol then causes compile errors until every record includes the protocol.
 */
export type ProtocolName = "connect" | "grpc" | "grpc-web" | "mcp" | "rest";
