import type { Socket } from "node:net";
import type { Failure } from "../errors/index.ts";
import type { BacklogBudget, BaseExchange, ErrorScope, Exchange, HttpProblem, Limits } from "../exchange/index.ts";

/** The HTTP version that a connection speaks, inside TLS if there is any. */
export type HttpMajorVersion = "http1" | "http2";

/** What a listener passes to an {@link HttpEngine}'s servers. */
export interface HttpServerOptions {
  readonly limits: Limits;
  /** Counts the bytes that clients do not read, for both HTTP versions together. */
  readonly budget: BacklogBudget;
  /**
   * Serves an exchange.
   *
   * @param socket - its connection, or `undefined` if node itself publishes the request on its diagnostics channels
   */
  readonly serve: (exchange: BaseExchange, socket: Socket | undefined) => void;
  readonly refuse: (exchange: Exchange, problem: HttpProblem) => void;
  /** Counts an HTTP/2 error. @param code - its name in RFC 9113 */
  readonly countError: (scope: ErrorScope, code: string) => void;
  /** Reports a fault that belongs to no call. */
  readonly report: (error: unknown, failure: Failure) => void;
}

/** A port's load at one moment. */
export interface GatewayLoad {
  /** Open connections by the HTTP version that they speak. Connections that have sent nothing yet are not counted. */
  readonly connections: Readonly<Record<HttpMajorVersion, number>>;
  /** Requests whose response has not been sent completely. On HTTP/2 each is a stream. */
  readonly requests: Readonly<Record<HttpMajorVersion, number>>;
  /** Bytes that are buffered because clients do not read. */
  readonly backlogBytes: number;
  /**
   * Requests refused since the start because they are not valid HTTP, such as one with too long a URL, by HTTP status.
   * Hooks are not called for them, because they have neither a route nor a credential. Exception: on our HTTP/1.1 a
   * call's body may prove to be invalid. The call then ends as if its client had disconnected.
   */
  readonly badRequests: ReadonlyMap<number, number>;
  /**
   * HTTP/2 errors in the engine since the start, by their code's name (RFC 9113 §5.4). Counts streams that were reset
   * because of invalid frames, or refused because too many were open, which can also happen to a correct client. Also
   * counts connections that were closed with an error, such as ENHANCE_YOUR_CALM for too many resets. Not counted are
   * streams reset because of a timeout, connections closed as idle or dead, and our own defects, which are reported as
   * faults.
   */
  readonly http2Errors: Readonly<Record<ErrorScope, ReadonlyMap<string, number>>>;
}

/** A connection that can report whether it has requests, for {@link OpenConnections}. */
export interface ServedConnection {
  /** Whether a request has no complete response yet, or response bytes have not been sent yet. */
  readonly busy: boolean;
}

/** A connection that an {@link HttpServer} serves. */
export interface HttpConnection extends ServedConnection {
  /** Requests without a completely sent response. */
  readonly requests: number;
  /** Closes the connection once its requests have responses. */
  drain(): void;
  /** Closes the connection because of its age, as {@link drain} does. Closes an HTTP/1.1 connection also when idle. */
  retire(): void;
  /** Closes the connection immediately. */
  destroy(): void;
}

/** Serves a port's connections that speak one HTTP version. Never listens itself. */
export interface HttpServer {
  /** Takes over a connection. Bytes that were read from it must have been put back. */
  take(socket: Socket): HttpConnection;
  /** Closes every connection once its requests have responses. */
  drain(): void;
  /** Closes the server itself, not its connections. */
  close(): void;
  /** Whether any connection is busy. */
  readonly busy: boolean;
  /** How many connections are open. */
  readonly connections: number;
  /** Requests without a completely sent response. */
  readonly requests: number;
}

/** An HTTP implementation: a server for each version, which serves the connections that a listener accepts. */
export interface HttpEngine {
  createHttp1Server(options: HttpServerOptions): HttpServer;
  createHttp2Server(options: HttpServerOptions): HttpServer;
}
