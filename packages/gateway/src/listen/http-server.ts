import type { Socket } from "node:net";
import type { Failure } from "../errors/index.ts";
import type { BacklogBudget, CarriedExchange, ErrorScope, Exchange, HttpProblem, Limits } from "../exchange/index.ts";

/** The version of HTTP that a connection speaks, inside TLS if there is any. */
export type HttpMajorVersion = "http1" | "http2";

/** What a listener passes to the servers of an {@link HttpEngine}. */
export interface HttpServerOptions {
  readonly limits: Limits;
  /** Counts the bytes that clients do not take, over both versions of HTTP. */
  readonly budget: BacklogBudget;
  /**
   * Serves an exchange.
   *
   * @param socket - the connection that carries it; `undefined` if node publishes the request on its diagnostics channels
   */
  readonly serve: (exchange: CarriedExchange, socket: Socket | undefined) => void;
  readonly refuse: (exchange: Exchange, problem: HttpProblem) => void;
  /** Counts an error of HTTP/2. @param code - its name in RFC 9113 */
  readonly countError: (scope: ErrorScope, code: string) => void;
  /** Reports a fault that belongs to no call. */
  readonly report: (error: unknown, failure: Failure) => void;
}

/** The load of a port at one moment. */
export interface GatewayLoad {
  /** Open connections by the HTTP version they speak; those that have sent nothing yet are in neither. */
  readonly connections: Readonly<Record<HttpMajorVersion, number>>;
  /** Requests that are not answered yet, or whose answer is not sent yet; on HTTP/2 each is a stream. */
  readonly requests: Readonly<Record<HttpMajorVersion, number>>;
  /** Bytes that wait because clients do not take them. */
  readonly backlogBytes: number;
  /**
   * Requests refused since the start because they are wrong as HTTP, such as one with too long a URL, by HTTP status.
   * No hook sees them: they have neither a match nor a credential. Except that on our HTTP/1.1 the body of a call may
   * turn out to be wrong; such a call ends as if its client had gone away.
   */
  readonly badRequests: ReadonlyMap<number, number>;
  /**
   * Errors of our own HTTP/2 since the start, by the name of their code (RFC 9113 §5.4): streams that were reset
   * because of wrong frames, or refused because too many were open, which can happen to a correct client, too; and
   * connections that were ended with an error, such as ENHANCE_YOUR_CALM for too many resets. Not counted are streams
   * reset because a client was late, connections closed as idle or dead, and our own defects, which are reported as
   * faults.
   */
  readonly http2Errors: Readonly<Record<ErrorScope, ReadonlyMap<string, number>>>;
}

/** A connection whose requests can be told apart from silence: what {@link OpenConnections} needs of it. */
export interface TakenConnection {
  /** Whether a request has no complete response yet, or response bytes are still to be sent. */
  readonly busy: boolean;
}

/** A connection that an {@link HttpServer} serves. */
export interface HttpConnection extends TakenConnection {
  /** Requests without a completely sent response. */
  readonly requests: number;
  /** Closes the connection once its requests are answered. */
  drain(): void;
  /** Closes the connection, which is old, as {@link drain} does; also one of HTTP/1.1 that stays idle. */
  retire(): void;
  /** Closes the connection immediately. */
  destroy(): void;
}

/** Serves the connections of a port that speak one version of HTTP. Never listens itself. */
export interface HttpServer {
  /** Takes over a connection. Whatever was read of it must have been put back. */
  take(socket: Socket): HttpConnection;
  /** Closes every connection once its requests are answered. */
  drain(): void;
  /** Closes the server itself, not its connections. */
  close(): void;
  /** Whether any connection is busy. */
  readonly busy: boolean;
  /** How many connections are open. */
  readonly connections: number;
  /** The number of requests without a completely sent response. */
  readonly requests: number;
}

/** An implementation of HTTP: a server for each version, which get the connections that a listener accepts. */
export interface HttpEngine {
  createHttp1Server(options: HttpServerOptions): HttpServer;
  createHttp2Server(options: HttpServerOptions): HttpServer;
}
