import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import {
  chunkExtensionsTooLargeProblem,
  CommonHeaderFields,
  type HeaderFields,
  headerTooLargeProblem,
  type HttpProblem,
  type Limits,
  lingerMsMax,
  longMethodProblem,
  invalidHttpProblem,
  timerMsMax,
} from "../exchange/index.ts";
import {
  checkIntervalMs,
  createConnectionClock,
  type HttpServer,
  type HttpServerOptions,
  TrackedHttpServer,
  putBack,
} from "../listen/index.ts";
import { NodeHttp1Connection } from "./http1-connection.ts";
import { continueWhenRead } from "./http1-exchange.ts";
import { checkNodeRequestHead } from "./check-node-request-head.ts";

/**
 * Creates a server for HTTP/1.0 and HTTP/1.1 on node:http. Bytes that are not HTTP get an error response. A graceful
 * shutdown closes each connection after its next response.
 */
export function createNodeHttp1Server(options: HttpServerOptions): HttpServer {
  const { headerTimeoutMs, requestTimeoutMs, idleTimeoutMs } = options.limits;
  const connections = new Set<NodeHttp1Connection>();
  const bySocket = new WeakMap<Duplex, NodeHttp1Connection>();
  const clock = createConnectionClock(
    connections,
    checkIntervalMs(headerTimeoutMs, requestTimeoutMs, idleTimeoutMs, lingerMsMax),
  );
  let server: Server | undefined;
  const connect = (socket: Socket, firstBytes: Buffer | undefined): NodeHttp1Connection => {
    if (firstBytes !== undefined) putBack(socket, firstBytes);
    clock.start();
    const connection = new NodeHttp1Connection(socket, options);
    connections.add(connection);
    bySocket.set(socket, connection);
    socket.on("close", () => connections.delete(connection));
    // Only the first bytes are checked for RTSP and ICE, so that node later reads directly from the handle.
    // Reading within a `data` event, as `socket.read()` would, could stop the socket permanently.
    const checked: Buffer | null = firstBytes ?? socket.read();
    if (checked !== null) {
      connection.onFirstBytes(checked);
      if (firstBytes === undefined) socket.unshift(checked);
    } else if ("encrypted" in socket) {
      socket.once("data", (bytes) => connection.onFirstBytes(bytes));
    }
    server ??= createServer(options.limits, (of) => bySocket.get(of));
    server.emit("connection", socket);
    // After each request, node resumes even a paused socket. This listener runs after node's, and pauses it again.
    socket.on("resume", () => connection.pauseIfFull());
    // With a "data" listener, node's parser reads from the stream instead of directly from the handle. Without the
    // listener, a parser that is paused between two TLS records would report the second record as an error.
    if ("encrypted" in socket) socket.on("data", ignore);
    return connection;
  };
  return new TrackedHttpServer(connections, connect, () => clock.stop());
}

/** Creates a server that does not listen. The server passes requests and errors to the connections. */
function createServer(limits: Limits, connectionOf: (socket: Duplex) => NodeHttp1Connection | undefined): Server {
  // Loads node:http with the first connection, because loading adds 10 ms to the start.
  const server = process.getBuiltinModule("node:http").createServer({
    // Node's limit covers the sum of fields and target. The separate limits are checked when the head is complete.
    maxHeaderSize: limits.headerBytes + limits.urlBytes,
    keepAliveTimeout: Math.min(limits.idleTimeoutMs, keepAliveMsMax),
    insecureHTTPParser: false,
    // The gateway refuses a missing Host with an error record, like all problems in a head.
    requireHostHeader: false,
  });
  // Node drops all fields after the first 2,000 by default. The gateway limits only the number of bytes.
  server.maxHeadersCount = 0;
  server.on("request", (request, response) => connectionOf(request.socket)?.onRequest(request, response));
  server.on("checkContinue", (request, response) => {
    continueWhenRead(response);
    connectionOf(request.socket)?.onRequest(request, response);
  });
  server.on("checkExpectation", (request, response) => connectionOf(request.socket)?.onRequest(request, response));
  server.on("connect", (request, socket) => {
    const { rawHeaders } = request;
    const target = checkNodeRequestHead(request, new CommonHeaderFields(rawHeaders), limits);
    connectionOf(socket)?.onProblem(typeof target === "string" ? invalidHttpProblem() : target, rawHeaders);
  });
  server.on("clientError", (error: ParseError, socket) => {
    const { code, rawPacket } = error;
    if (code?.startsWith("HPE_") !== true) return socket.destroy();
    connectionOf(socket)?.onProblem(problemOf(error, limits), originIn(rawPacket));
  });
  return server;
}

/** An error from node's parser or from a socket. */
type ParseError = NodeJS.ErrnoException & { readonly rawPacket?: Buffer; readonly bytesParsed?: number };

/** Returns the problem for a request that node's parser has rejected. */
function problemOf({ code, rawPacket, bytesParsed = 0 }: ParseError, limits: Limits): HttpProblem {
  if (code === "HPE_HEADER_OVERFLOW") return headerTooLargeProblem(limits);
  if (code === "HPE_CHUNK_EXTENSIONS_OVERFLOW") return chunkExtensionsTooLargeProblem();
  const problem = code === "HPE_INVALID_METHOD" ? longMethodProblem(lineAt(rawPacket, bytesParsed)) : undefined;
  return problem ?? invalidHttpProblem();
}

/** Returns the line that contains the octet at an offset in a packet. */
function lineAt(packet: Buffer | undefined, at: number): string {
  const text = packet?.toString("latin1") ?? "";
  return text.slice(text.lastIndexOf("\n", at) + 1);
}

// The Origin field, for CORS, in a packet that node's parser refused. With pipelining, which no browser does, the field
// may belong to an earlier request.
function originIn(packet: Buffer | undefined): HeaderFields {
  const [, origin] = originLine.exec(packet?.toString("latin1") ?? "") ?? [];
  return origin === undefined ? [] : ["origin", origin];
}

const originLine = /\r\norigin:[\t ]*([\x21-\x7e]*)[\t ]*\r\n/i;

function ignore(): void {}

/** Maximum keep-alive timeout in milliseconds: the limit for node's timers without the second that node adds. */
const keepAliveMsMax = timerMsMax - 1000;
