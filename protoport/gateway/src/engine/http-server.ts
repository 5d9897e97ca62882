import type { Socket } from "node:net";
import {
  type ErrorScope,
  type Exchange,
  type Failure,
  type HeaderFields,
  type HttpProblem,
  type Limits,
  type Peer,
  prepareHeaderFields,
} from "../http/index.ts";
import type { BacklogBudget } from "./backlog.ts";
import type { OpenItems } from "./open-list.ts";

/** The major HTTP version on a connection, with or without TLS. */
export type HttpMajorVersion = "http1" | "http2";

/** Options that a {@link Listener} passes to its servers. */
export interface HttpServerOptions {
  readonly limits: Limits;
  /** Counts the bytes that clients do not read. The servers for both HTTP versions share one budget. */
  readonly budget: BacklogBudget;
  readonly serve: (exchange: Exchange) => void;
  readonly refuse: (exchange: Exchange, problem: HttpProblem) => void;
  /** Returns why the server closes connections, or `undefined` before the end of a shutdown. */
  readonly stopProblem: () => HttpProblem | undefined;
  /** Counts an HTTP/2 error. @param code - the name of the error code in RFC 9113 */
  readonly countError: (scope: ErrorScope, code: string) => void;
  /** Reports an unexpected error outside of any call. */
  readonly report: (error: unknown, failure: Failure) => void;
}

/** The current load on a port. */
export interface GatewayLoad {
  /** Number of open connections by HTTP version. Connections on which no bytes have arrived are not counted. */
  readonly connections: Readonly<Record<HttpMajorVersion, number>>;
  /** Number of requests without a completely sent response, by HTTP version. On HTTP/2 each request is a stream. */
  readonly requests: Readonly<Record<HttpMajorVersion, number>>;
  /** Number of bytes that are buffered because clients do not read. */
  readonly backlogBytes: number;
  /**
   * Number of requests refused since the start because the HTTP request is not valid, by HTTP status. An example is a
   * URL that is too long. Hooks are not called for refused requests, because a refused request has neither a route nor
   * a credential. A body over HTTP/1.1 may prove to be invalid during a call. A call with an invalid body ends as if the
   * client had disconnected.
   */
  readonly badRequests: ReadonlyMap<number, number>;
  /**
   * Number of HTTP/2 errors since the start, by error code name (RFC 9113 §5.4). Counts streams that were
   * reset because of invalid frames. Also counts streams that were refused because too many streams were open, which
   * can happen to a correct client. Connections count if they were closed with an error, such as ENHANCE_YOUR_CALM for
   * too many resets. Streams reset because of a timeout, idle or dead connections, and our own bugs do not count.
   */
  readonly http2Errors: Readonly<Record<ErrorScope, ReadonlyMap<string, number>>>;
}

/** A connection that can report whether it has requests, for {@link OpenConnections}. */
export interface ServedConnection {
  /** Whether a request has no complete response yet, or response bytes are unsent. */
  readonly busy: boolean;
}

/** A connection that an {@link HttpServer} serves. */
export interface HttpConnection extends ServedConnection {
  /** Number of requests without a completely sent response. */
  readonly requests: number;
  /** Closes the connection when all requests have responses. */
  drain(): void;
  /** Drains the connection because of its age, like {@link drain}, and also closes an idle HTTP/1.1 connection. */
  retire(): void;
  /** Closes the connection immediately. */
  destroy(): void;
  /** Receives the bytes that were read before {@link HttpServer.take}, unless `take` has put them back. */
  receive?(firstBytes: Buffer): void;
}

/** Serves the connections on a port for one HTTP version. The server does not listen. */
export class HttpServer {
  readonly #open: OpenItems<HttpConnection>;
  readonly #connect: (socket: Socket, firstBytes: Buffer | undefined) => HttpConnection;
  /** Closes the server itself, not its connections. */
  readonly close: () => void;
  #isDraining = false;

  /** `connect` keeps a connection in `open` until the connection closes. */
  constructor(
    open: OpenItems<HttpConnection>,
    connect: (socket: Socket, firstBytes: Buffer | undefined) => HttpConnection,
    close: () => void,
  ) {
    this.#open = open;
    this.#connect = connect;
    this.close = close;
  }

  /** Takes over a connection whose socket is flowing. @param firstBytes - all bytes that were read from the socket */
  take(socket: Socket, firstBytes?: Buffer): HttpConnection {
    const connection = this.#connect(socket, firstBytes);
    // Drains a connection that was accepted before the drain began and has no request yet.
    if (this.#isDraining) connection.drain();
    if (firstBytes !== undefined) connection.receive?.(firstBytes);
    return connection;
  }

  /** Closes each connection when all requests on the connection have responses. */
  drain(): void {
    this.#isDraining = true;
    for (const connection of this.#open) connection.drain();
  }

  /** Whether any connection is busy. */
  get busy(): boolean {
    return [...this.#open].some(({ busy }) => busy);
  }

  get connections(): number {
    return this.#open.size;
  }

  /** Number of requests without a completely sent response. */
  get requests(): number {
    return [...this.#open].reduce((sum, { requests }) => sum + requests, 0);
  }
}

/** The second for which the Date field was formatted. All servers in the process share the field. */
let dateSecond = 0;
let date: HeaderFields = [];

/** Returns the Date field. A server with a clock sends this field with each response (RFC 9110 §6.6.1). */
export function dateFields(): HeaderFields {
  const nowS = Math.trunc(Date.now() / 1000);
  if (nowS !== dateSecond) {
    dateSecond = nowS;
    date = prepareHeaderFields("date", new Date(nowS * 1000).toUTCString());
  }
  return date;
}

/** Makes a socket report another peer, such as the client that a PROXY header names. */
export function overridePeer(socket: Socket, { address, port }: Peer): void {
  Object.defineProperty(socket, "remoteAddress", { value: address });
  Object.defineProperty(socket, "remotePort", { value: port });
}
