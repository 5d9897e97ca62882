import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import {
  CommonFields,
  type Exchange,
  headerTooLarge,
  type HttpProblem,
  httpProblem,
  type Limits,
  type ProblemWriter,
  readRequestTarget,
  timerMsMax,
  urlTooLong,
} from "../index.ts";
import type { HttpServer, HttpServerOptions } from "./http-server.ts";
import {
  type ConnectionPolicy,
  connectionOn,
  type NodeHttp1Connection,
  http1LingerMs,
  requestsOn,
} from "./node-http1-connection.ts";
import { NodeHttp1Exchange } from "./node-http1-exchange.ts";
import { watchIdle } from "./idle-watch.ts";

/**
 * Creates a server of HTTP/1.0 and HTTP/1.1 on node:http. Requests that node's parser rejects are also answered with
 * the error record. A drain ends each connection with its next answer.
 */
export function createNodeHttp1Server(options: HttpServerOptions): HttpServer {
  const { limits, budget, serve, refuse, writeProblem } = options;
  // An import would read every export of the module, which loads node's HTTP client too: 20 ms of start-up.
  const { createServer } = process.getBuiltinModule("node:http");
  const server = createServer({
    maxHeaderSize: limits.headerBytes,
    // The header is part of the request, so node requires this to be no longer.
    headersTimeout: Math.min(limits.headerTimeoutMs, limits.requestTimeoutMs),
    requestTimeout: limits.requestTimeoutMs,
    connectionsCheckingInterval: Math.ceil(
      Math.min(limits.headerTimeoutMs, limits.requestTimeoutMs) / checksPerTimeout,
    ),
    // Idle connections are watched below, and the exchange announces the limit to the client.
    keepAliveTimeout: 0,
    // node would answer with an empty 400.
    requireHostHeader: false,
    noDelay: true,
    // Saves the stream of a request without a body.
    optimizeEmptyRequests: true,
  });
  // node would hide fields after the first two thousand, perhaps a second credential. Their bytes are bounded instead.
  server.maxHeadersCount = 0;
  const stallTimeoutMs = Math.min(limits.idleTimeoutMs, timerMsMax);
  const policy: ConnectionPolicy = {
    draining: false,
    stallTimeoutMs,
    lingerMs: Math.min(http1LingerMs, limits.requestTimeoutMs),
    requestsMax: limits.concurrentStreams,
    budget,
    keepAlive: ["Keep-Alive", `timeout=${Math.floor(stallTimeoutMs / 1000)}`],
  };
  const begin = (exchange: Exchange, target: string | HttpProblem): void => {
    if (typeof target === "string") serve(exchange);
    else refuse(exchange, target);
  };
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    const connection = connectionOn(request.socket, policy);
    if (connection.ended) return;
    const common = new CommonFields(request.rawHeaders);
    const target = readTarget(request, common, connection, limits);
    const path = typeof target === "string" ? target : "/";
    const exchange = new NodeHttp1Exchange(request, response, path, common, connection);
    if (connection.carry(exchange)) begin(exchange, target);
    else connection.postpone(begin.bind(undefined, exchange, target));
  };
  cutOffTheIdle(server, limits, policy);
  server.on("request", onRequest);
  // The client waits before it sends its body; the exchange sends the 100 once the body is wanted.
  server.on("checkContinue", onRequest);
  server.on("checkExpectation", (request, response) => {
    const connection = connectionOn(request.socket, policy);
    if (connection.ended) return;
    const exchange = new NodeHttp1Exchange(request, response, "/", new CommonFields(request.rawHeaders), connection);
    connection.carry(exchange);
    connection.end();
    refuse(exchange, httpProblem(417, "the expectation cannot be met"));
  });
  server.on("clientError", (error: ClientError, socket: Socket) => {
    answerClientError(error, socket, connectionOn(socket, policy), options);
  });
  // Tunnels are for proxies, and their target is no path (RFC 9112 §3.2.3). node would close the connection silently.
  server.on("connect", (_request, socket: Socket) => {
    const connection = connectionOn(socket, policy);
    const { latest } = connection;
    if (latest !== undefined) return latest.endConnection();
    connection.end();
    sendProblem(socket, httpProblem(400, "the request target is not valid"), writeProblem);
  });
  // node:http starts checking its time-outs on this event only.
  server.emit("listening");
  const sockets = new Set<Socket>();
  return {
    take(socket) {
      sockets.add(socket);
      socket.on("close", () => sockets.delete(socket));
      server.emit("connection", socket);
    },
    drain() {
      policy.draining = true;
    },
    get busy() {
      return [...sockets].some((socket) => requestsOn(socket) > 0);
    },
    get connections() {
      return sockets.size;
    },
    get requests() {
      return [...sockets].reduce((sum, socket) => sum + requestsOn(socket), 0);
    },
    close: () => void server.close(),
  };
}

/** Ends idle connections, and those of clients that do not read their answers. */
function cutOffTheIdle(server: Server, limits: Limits, policy: ConnectionPolicy): void {
  // An incomplete header has a time-out, and an answer, of its own.
  const idleTimeoutMs = Math.max(limits.idleTimeoutMs, 2 * limits.headerTimeoutMs);
  server.on("connection", (socket: Socket) => {
    const connection = connectionOn(socket, policy);
    watchIdle(
      socket,
      () => socket.bytesRead + socket.bytesWritten,
      idleTimeoutMs,
      () => {
        // An unread answer has a time-out of its own, and a handler may take its time.
        if (connection.size === 0 && socket.writableLength === 0) socket.destroySoon();
      },
    );
  });
  // Set by an exchange that waits for its reader. When everything was taken it is switched off, because a quiet stream
  // may follow.
  server.on("timeout", (socket: Socket) => {
    if (socket.writableLength > 0) socket.destroy();
    else socket.setTimeout(0);
  });
}

// node checks for late requests at intervals, by default only every 30 seconds.
const checksPerTimeout = 4;

function readTarget(
  request: IncomingMessage,
  { transferEncoding, host, listBytes }: CommonFields,
  connection: NodeHttp1Connection,
  limits: Limits,
): string | HttpProblem {
  // HTTP/0.9 has no header and no status, but its request line passes node's parser.
  if (request.httpVersionMajor !== 1) return httpProblem(400, "the HTTP version is not supported");
  if (transferEncoding !== null) {
    const problem = framingProblem(transferEncoding, request.httpVersionMinor);
    if (problem !== undefined) {
      connection.end();
      return problem;
    }
  }
  // The parser counts only their text.
  if (listBytes > limits.headerBytes) return headerTooLarge(limits);
  // RFC 9112 §3.2: a request of HTTP/1.1 without exactly one valid Host is answered with 400.
  return readRequestTarget(request.url ?? "", host, request.httpVersionMinor > 0, limits);
}

/** Returns the problem of a request whose end cannot be determined. */
function framingProblem(transferEncoding: string, httpVersionMinor: number): HttpProblem | undefined {
  // RFC 9112 §6.1: whoever sent this does not understand what it forwards.
  if (httpVersionMinor === 0) return httpProblem(400, "HTTP/1.0 has no transfer encoding");
  // The parser rejects other codings only after it has handed the request on.
  const isKnown = transferEncoding.toLowerCase() === "chunked";
  return isKnown ? undefined : httpProblem(400, "the transfer encoding is not supported");
}

type ClientError = Error & { readonly code?: string; readonly rawPacket?: Buffer };

function answerClientError(
  error: ClientError,
  socket: Socket,
  connection: NodeHttp1Connection,
  { limits, refuse, writeProblem }: HttpServerOptions,
): void {
  if (socket.destroyed || !socket.writable || error.code === "ECONNRESET") {
    socket.destroy();
    return;
  }
  const { ended, latest, size } = connection;
  // The last answer has been sent, and the connection is closing.
  if (ended && latest === undefined) return;
  connection.end();
  const problem = problemOf(error, limits);
  if (latest === undefined) return sendProblem(socket, problem, writeProblem);
  // The error comes after complete requests: these are served first.
  if (latest.requestComplete) return latest.endConnection();
  // The body of the current request is malformed. Two answers would desynchronise the connection.
  if (latest.httpStatus === 0) {
    refuse(latest, problem);
    latest.abortReceiver?.aborted(problem.error);
    // One that is still being admitted need not run: nobody takes another answer.
    latest.gone = true;
  }
  if (size > 1) return latest.endConnection();
  socket.destroySoon();
  // An answer that has begun cannot be completed any more.
  latest.abortReceiver?.aborted(problem.error);
}

/** Answers on a connection for which node:http has no response object, and ends it. */
function sendProblem(socket: Socket, problem: HttpProblem, writeProblem: ProblemWriter): void {
  const { STATUS_CODES } = process.getBuiltinModule("node:http");
  const record = writeProblem(problem);
  const header = [
    `HTTP/1.1 ${record.httpStatus} ${STATUS_CODES[record.httpStatus] ?? ""}`,
    `content-type: ${record.contentType}`,
    `content-length: ${record.body.byteLength}`,
    `date: ${new Date().toUTCString()}`,
    "connection: close",
  ];
  socket.write(`${header.join("\r\n")}\r\n\r\n`);
  socket.write(record.body);
  socket.destroySoon();
}

function problemOf(error: ClientError, limits: Limits): HttpProblem {
  switch (error.code) {
    case "HPE_HEADER_OVERFLOW": {
      const firstLine = error.rawPacket?.indexOf("\n") ?? -1;
      const requestLine = firstLine < 0 ? (error.rawPacket?.byteLength ?? 0) : firstLine;
      if (requestLine > limits.urlBytes) return urlTooLong(limits);
      return headerTooLarge(limits);
    }
    case "HPE_CHUNK_EXTENSIONS_OVERFLOW":
      return httpProblem(413, "the chunk extensions are too large");
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return httpProblem(408, "the request did not arrive in time");
    default:
      return httpProblem(400, "the request is not valid HTTP");
  }
}
