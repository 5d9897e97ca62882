import { defaultHttp1Limits, Http1Connection, type Http1Limits, type Http1RequestHead } from "../../http1/index.ts";
import { headerTooLarge, type HttpProblem, type Limits, readRequestTarget, timerMsMax } from "../index.ts";
import type { HttpServer, HttpServerOptions } from "./http-server.ts";
import { OwnHttp1Exchange } from "./own-http1-exchange.ts";
import { createOwnServer } from "./own-server.ts";
import { unreadBodyBytesMax } from "./unread-body.ts";

/**
 * Creates a server for HTTP/1.0 and HTTP/1.1 on the gateway's own implementation. Bytes that are not HTTP are answered
 * with an error record, too. A drain ends each connection with its next answer.
 */
export function createOwnHttp1Server({ limits, budget, serve, refuse, report }: HttpServerOptions): HttpServer {
  const connections = new Set<Http1Connection>();
  const http1Limits = toHttp1Limits(limits);
  const { headerTimeoutMs, requestTimeoutMs, idleTimeoutMs, lingerMs } = http1Limits;
  const lookEveryMs = Math.ceil(Math.min(headerTimeoutMs, requestTimeoutMs, idleTimeoutMs, lingerMs) / looksPerTimeout);
  const options = {
    limits: http1Limits,
    lookEveryMs,
    budget,
    onRequest: (connection: Http1Connection, head: Http1RequestHead) => {
      const target = readTarget(head, limits);
      if (typeof target === "string") serve(new OwnHttp1Exchange(head, target, connection, refuse));
      else refuse(new OwnHttp1Exchange(head, "/", connection, refuse), target);
    },
    onClose: (connection: Http1Connection) => void connections.delete(connection),
    // A defect of ours that belongs to no call.
    onFault: (error: unknown) => report(error, "HTTP/1.1 could not be served"),
  };
  const clock = setInterval(() => {
    for (const connection of connections) connection.look();
  }, lookEveryMs).unref();
  return createOwnServer(
    connections,
    (socket) => new Http1Connection(socket, options),
    () => clearInterval(clock),
  );
}

function readTarget({ problem, target, section }: Http1RequestHead, limits: Limits): string | HttpProblem {
  if (problem !== undefined) return problem;
  const { common, httpVersion } = section;
  // The connection has bounded the bytes as sent, but many small fields cost more than their text.
  if (common.listBytes > limits.headerBytes) return headerTooLarge(limits);
  return readRequestTarget(target, common.host, httpVersion === "1.1", limits);
}

function toHttp1Limits(limits: Limits): Http1Limits {
  const { headerBytes, urlBytes, headerTimeoutMs, requestTimeoutMs } = limits;
  const idleTimeoutMs = Math.min(limits.idleTimeoutMs, timerMsMax);
  return {
    headerBytes,
    targetBytes: urlBytes,
    headerTimeoutMs: Math.min(headerTimeoutMs, requestTimeoutMs),
    requestTimeoutMs,
    idleTimeoutMs,
    stallTimeoutMs: idleTimeoutMs,
    lingerMs: Math.min(defaultHttp1Limits.lingerMs, requestTimeoutMs),
    lingerBytes: defaultHttp1Limits.lingerBytes,
    unwantedBodyBytes: unreadBodyBytesMax,
    aheadBytes: defaultHttp1Limits.aheadBytes,
  };
}

// No time-out is missed by more than a quarter.
const looksPerTimeout = 4;
