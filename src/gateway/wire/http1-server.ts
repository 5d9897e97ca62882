import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { ErrorWriter } from "./error-writer.ts";
import type { Exchange } from "./exchange.ts";
import { type ConnectionPolicy, exchangeOn, exchangesOn, Http1Exchange } from "./http1-exchange.ts";
import { fieldListBytes, readField } from "./header-fields.ts";
import { watchIdle } from "./idle-watch.ts";
import type { Limits } from "./limits.ts";
import { headerTooLarge, type HttpProblem, httpProblem, readRequestTarget, urlTooLong } from "./request-line.ts";
import { timerMsMax } from "./timeout.ts";

/** What {@link createHttp1Server} stands on. */
export interface Http1ServerOptions {
  readonly limits: Limits;
  readonly serve: (exchange: Exchange) => void;
  readonly refuse: (exchange: Exchange, problem: HttpProblem) => void;
  readonly writeErrorRecord: ErrorWriter;
  readonly draining: () => boolean;
}

/**
 * A node:http server that never listens: connections are handed to it with `emit("connection", socket)`.
 *
 * Every answer of its own making, for requests that its parser rejects, is the error record too.
 */
export function createHttp1Server(options: Http1ServerOptions): Server {
  const { limits, serve, refuse, writeErrorRecord, draining } = options;
  // An import would look at all that the module exports, which loads node's HTTP client too: 20 ms of a start.
  const { createServer } = process.getBuiltinModule("node:http");
  const server = createServer({
    maxHeaderSize: limits.headerBytes,
    // The header is a part of the request; node insists.
    headersTimeout: Math.min(limits.headerTimeoutMs, limits.requestTimeoutMs),
    requestTimeout: limits.requestTimeoutMs,
    connectionsCheckingInterval: Math.ceil(
      Math.min(limits.headerTimeoutMs, limits.requestTimeoutMs) / checksPerTimeout,
    ),
    // Idle connections are watched here, and the exchange tells the client of it.
    keepAliveTimeout: 0,
    // node would answer with an empty 400.
    requireHostHeader: false,
    noDelay: true,
    // A request without a body needs no stream to read it by.
    optimizeEmptyRequests: true,
  });
  // node would hide what comes behind two thousand fields, a second credential for one; their bytes are bounded.
  server.maxHeadersCount = 0;
  const stallTimeoutMs = Math.min(limits.idleTimeoutMs, timerMsMax);
  const policy: ConnectionPolicy = {
    closing: draining,
    stallTimeoutMs,
    requestsMax: limits.concurrentStreams,
    keepAlive: ["Keep-Alive", `timeout=${Math.floor(stallTimeoutMs / 1000)}`],
  };
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    const target = judge(request, limits);
    const origin = typeof target === "string" ? target : "/";
    const exchange = new Http1Exchange(request, response, origin, policy);
    if (typeof target === "string") serve(exchange);
    else refuse(exchange, target);
  };
  cutOffTheIdle(server, limits);
  server.on("request", onRequest);
  // The client waits to be told to send its body; the exchange says so once the body is wanted.
  server.on("checkContinue", onRequest);
  server.on("checkExpectation", (request, response) => {
    const exchange = new Http1Exchange(request, response, "/", { ...policy, closing: () => true });
    refuse(exchange, httpProblem(417, "the expectation cannot be met"));
  });
  server.on("clientError", (error: Error & { code?: string; rawPacket?: Buffer }, socket: Socket) => {
    answerClientError(error, socket, options);
  });
  // A tunnel is asked of proxies, and its target is no path (RFC 9112 §3.2.3). node would close without a word.
  server.on("connect", (_request, socket: Socket) => {
    const problem = httpProblem(400, "the request target is not valid");
    const before = exchangeOn(socket);
    if (before === undefined) writeProblem(socket, problem, writeErrorRecord);
    else before.endConnection();
  });
  // node:http starts the clock of its time-outs on this event, and only on it.
  server.emit("listening");
  return server;
}

/** Ends connections that carry nothing, and those of clients that leave lie what they are answered. */
function cutOffTheIdle(server: Server, limits: Limits): void {
  // A header that is under way has a time-out of its own, and an answer.
  const idleTimeoutMs = Math.max(limits.idleTimeoutMs, 2 * limits.headerTimeoutMs);
  server.on("connection", (socket: Socket) => {
    watchIdle(socket, socket, idleTimeoutMs, () => {
      // Who leaves its answer lie has a time-out of its own, and a handler may take its time.
      if (exchangeOn(socket) === undefined && socket.writableLength === 0) socket.destroySoon();
    });
  });
  // The time that an exchange has set for its reader. It runs on when all is taken: a quiet stream may follow.
  server.on("timeout", (socket: Socket) => {
    if (socket.writableLength > 0) socket.destroy();
    else socket.setTimeout(0);
  });
}

// node looks for requests that are late only now and then, and by default no oftener than every 30 seconds.
const checksPerTimeout = 4;

function judge(request: IncomingMessage, limits: Limits): string | HttpProblem {
  const { rawHeaders } = request;
  // HTTP/0.9 has no header and no status; its request line passes node's parser.
  if (request.httpVersionMajor !== 1) return httpProblem(400, "the HTTP version is not supported");
  const transferEncoding = readField(rawHeaders, "transfer-encoding");
  // The parser finds out about other codings only after the request was handed on.
  if (transferEncoding !== null && transferEncoding.toLowerCase() !== "chunked") {
    return httpProblem(400, "the transfer encoding is not supported");
  }
  // The parser counts their text alone.
  if (fieldListBytes(rawHeaders) > limits.headerBytes) return headerTooLarge(limits);
  // RFC 9112 §3.2: a request of HTTP/1.1 without exactly one valid Host is answered with 400.
  return readRequestTarget(request.url ?? "", readField(rawHeaders, "host"), request.httpVersionMinor > 0, limits);
}

function answerClientError(
  error: Error & { code?: string; rawPacket?: Buffer },
  socket: Socket,
  { limits, refuse, writeErrorRecord }: Http1ServerOptions,
): void {
  if (socket.destroyed || !socket.writable || error.code === "ECONNRESET") {
    socket.destroy();
    return;
  }
  const problem = problemOf(error, limits);
  const exchanges = exchangesOn(socket);
  const latest = exchanges.at(-1);
  if (latest === undefined) return writeProblem(socket, problem, writeErrorRecord);
  // What is wrong came behind requests that are there in full: they are served, and owed answers of their own.
  if (latest.requestComplete) return latest.endConnection();
  // The body of a request that we have in hand turned out wrong. Two answers would desynchronise the connection.
  if (latest.httpStatus === 0) {
    refuse(latest, problem);
    latest.listener?.aborted(problem.error);
  }
  if (exchanges.length === 1) socket.destroySoon();
  else latest.endConnection();
}

/** Answers on a connection that node:http gives no response object for, and ends it. */
function writeProblem(socket: Socket, problem: HttpProblem, writeErrorRecord: ErrorWriter): void {
  const record = writeErrorRecord(problem.error, { httpStatus: problem.httpStatus, procedure: undefined });
  const head = [
    `HTTP/1.1 ${record.httpStatus} ${reasonPhrase(record.httpStatus)}`,
    `content-type: ${record.contentType}`,
    `content-length: ${record.body.byteLength}`,
    `date: ${new Date().toUTCString()}`,
    "connection: close",
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n`);
  socket.end(record.body, () => socket.destroySoon());
}

function problemOf(error: { code?: string; rawPacket?: Buffer }, limits: Limits): HttpProblem {
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

const reasons: Readonly<Record<number, string>> = {
  400: "Bad Request",
  408: "Request Timeout",
  413: "Content Too Large",
  414: "URI Too Long",
  431: "Request Header Fields Too Large",
};

function reasonPhrase(httpStatus: number): string {
  return reasons[httpStatus] ?? "";
}
