import type { Socket } from "node:net";
import {
  authorityOf,
  BaseExchange,
  checkRequestHead,
  clientGoneProblem,
  type HeaderFields,
  type HttpProblem,
  type Limits,
  maxLingerMs,
  type Peer,
  type RequestBody,
  requireFields,
  runAfterTurn,
} from "../http/index.ts";
import { AwaitedBody } from "../http/node-entry.ts";
import { dateFields, HttpServer, type HttpServerOptions } from "./http-server.ts";
import { Http1Connection, type RequestReceiver } from "./http1/http1-connection.ts";
import type { Http1RequestHead } from "./http1/request-head.ts";
import { keepAliveLines } from "./http1/response-head.ts";
import { OpenList } from "./open-list.ts";

/**
 * Creates a server for HTTP/1.0 and HTTP/1.1 that does not use node:http. Bytes that are not HTTP get an error
 * response. A graceful shutdown closes each connection after its next response.
 */
export function createHttp1Server(serverOptions: HttpServerOptions): HttpServer {
  const { limits, budget, serve, refuse, report } = serverOptions;
  const connections = new OpenList<Http1Connection>();
  const { headerTimeoutMs, requestTimeoutMs, idleTimeoutMs } = limits;
  const timeoutCheckIntervalMs = checkIntervalMs(headerTimeoutMs, requestTimeoutMs, idleTimeoutMs, maxLingerMs);
  const clock = createConnectionClock(connections, timeoutCheckIntervalMs);
  const options = {
    limits,
    timeoutCheckIntervalMs,
    budget,
    keepAliveLines: keepAliveLines(idleTimeoutMs),
    onRequest: (connection: Http1Connection, head: Http1RequestHead) => {
      const target = checkHead(head, limits);
      if (typeof target !== "string")
        return refuse(new SocketHttp1Exchange(head, "/", connection, serverOptions), target);
      serve(new SocketHttp1Exchange(head, target, connection, serverOptions));
    },
    onClose: (connection: Http1Connection) => connections.delete(connection),
    // Errors in the engine's own code belong to no call, so they are reported here.
    onFault: (error: unknown) =>
      report(error, { errorCode: "ERR_CONNECTION_FAILED", what: "cannot serve an HTTP/1.1 connection" }),
  };
  const connect = (socket: Socket): Http1Connection => {
    clock.start();
    const connection = new Http1Connection(socket, options);
    connections.add(connection);
    return connection;
  };
  return new HttpServer(connections, connect, () => clock.stop());
}

function checkHead({ problem, httpMethod, target, section }: Http1RequestHead, limits: Limits): string | HttpProblem {
  if (problem !== undefined) return problem;
  const { common, httpVersion } = section;
  return checkRequestHead(httpMethod, target, common.host, httpVersion === "1.1", common.listBytes, limits);
}

/** A request and its response on one of the engine's HTTP/1.1 connections. */
class SocketHttp1Exchange extends BaseExchange implements RequestReceiver {
  readonly httpVersion: "1.0" | "1.1";
  readonly connection: object;
  readonly body: RequestBody | undefined;
  readonly #connection: Http1Connection;
  readonly #options: HttpServerOptions;

  /** @param target - the request target in origin form */
  constructor(head: Http1RequestHead, target: string, connection: Http1Connection, options: HttpServerOptions) {
    const { httpMethod, section } = head;
    const { fields, common, httpVersion } = section;
    const scheme = "encrypted" in connection.socket ? "https://" : "http://";
    // A request target that is an absolute URL contains the authority.
    const authority = head.target === target ? (common.host ?? "") : authorityOf(head.target, common.host);
    super({ httpMethod, target, url: scheme + authority + target, fields, common });
    this.httpVersion = httpVersion;
    this.connection = connection.key;
    this.#connection = connection;
    this.#options = options;
    const { bodyBytes } = section;
    this.body = bodyBytes === 0 ? undefined : new AwaitedBody(connection, bodyBytes === "chunked" ? 0 : bodyBytes);
    connection.receiver = this;
  }

  get isMounted(): boolean {
    return false;
  }

  get peer(): Peer {
    return this.#connection.peer;
  }

  onRequestError(problem: HttpProblem): void {
    if (this.httpStatus === 0) this.#options.refuse(this, problem);
    // The response has started and cannot be replaced by an error.
    else this.#connection.destroy();
    this.abort(problem);
  }

  onDisconnect(): void {
    this.abort(this.#options.stopProblem() ?? clientGoneProblem());
  }

  protected sendResponse(
    httpStatus: number,
    fields: HeaderFields,
    body: Uint8Array | undefined,
    trailer: HeaderFields | undefined,
  ): void {
    if (trailer === undefined) return this.#connection.respond(httpStatus, this.#withDate(fields), body);
    requireFields(trailer);
    this.sendHeader(httpStatus, fields);
    if (body !== undefined) this.sendPiece(body);
    this.sendEnd(trailer);
  }

  protected sendHeader(httpStatus: number, fields: HeaderFields): void {
    this.#connection.begin(httpStatus, this.#withDate(fields));
  }

  protected sendPiece(piece: Uint8Array): boolean {
    return this.#connection.write(piece);
  }

  protected sendEnd(trailer: HeaderFields | undefined): void {
    this.#connection.end(trailer);
  }

  protected sendReset(): void {
    this.#connection.destroy();
  }

  #withDate(fields: HeaderFields): readonly HeaderFields[] {
    return [fields, dateFields(), this.addedFields];
  }
}

/** A connection whose timeouts are checked at regular intervals. A check costs less than a timer for each timeout. */
interface CheckedConnection {
  /** Checks the timeouts. @param nowMs - from `performance.now()` */
  checkTimeouts(nowMs: number): void;
}

/** Checks the timeouts of all server connections. */
interface ConnectionClock {
  /** Starts the checks, unless they have started. A mounted gateway has no connections and never calls this method. */
  start(): void;
  stop(): void;
}

/** Creates a clock that checks the timeouts of connections every `everyMs` milliseconds. */
function createConnectionClock(connections: Iterable<CheckedConnection>, everyMs: number): ConnectionClock {
  let timer: NodeJS.Timeout | undefined;
  const checkAll = (): void => {
    const nowMs = performance.now();
    for (const connection of connections) connection.checkTimeouts(nowMs);
  };
  return {
    start: () => {
      // Pending data is read first, so that no client counts as silent after a pause of the process.
      timer ??= setInterval(() => runAfterTurn(checkAll, undefined), everyMs).unref();
    },
    stop: () => clearInterval(timer),
  };
}

/** Returns the interval between timeout checks, in milliseconds: a quarter of the shortest timeout, at most 1 s. */
function checkIntervalMs(...timeoutsMs: readonly number[]): number {
  return Math.min(maxIntervalMs, Math.ceil(Math.min(...timeoutsMs) / checksPerTimeout));
}

// At most 1 s, because the engine probes each client that has closed its side every second, also over HTTP/2.
const maxIntervalMs = 1000;
const checksPerTimeout = 4;
