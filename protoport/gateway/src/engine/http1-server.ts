import type { Socket } from "node:net";
import { Http1Connection, type Http1RequestHead, keepAliveLines } from "./http1/index.ts";
import { type HttpProblem, type Limits, lingerMsMax, checkRequestHead } from "../http/index.ts";
import { checkIntervalMs, createConnectionClock } from "./connection-clock.ts";
import { HttpServer, type HttpServerOptions } from "./http-server.ts";
import { SocketHttp1Exchange } from "./http1-exchange.ts";
import { OpenList } from "./open-list.ts";

/**
 * Creates a server for HTTP/1.0 and HTTP/1.1 that does not use node:http. Bytes that are not HTTP get an error
 * response. A graceful shutdown closes each connection after its next response.
 */
export function createHttp1Server({ limits, budget, serve, refuse, report }: HttpServerOptions): HttpServer {
  const connections = new OpenList<Http1Connection>();
  const { headerTimeoutMs, requestTimeoutMs, idleTimeoutMs } = limits;
  const timeoutCheckIntervalMs = checkIntervalMs(headerTimeoutMs, requestTimeoutMs, idleTimeoutMs, lingerMsMax);
  const clock = createConnectionClock(connections, timeoutCheckIntervalMs);
  const options = {
    limits,
    timeoutCheckIntervalMs,
    budget,
    keepAliveLines: keepAliveLines(idleTimeoutMs),
    onRequest: (connection: Http1Connection, head: Http1RequestHead) => {
      const target = checkHead(head, limits);
      if (typeof target !== "string") return refuse(new SocketHttp1Exchange(head, "/", connection, refuse), target);
      serve(new SocketHttp1Exchange(head, target, connection, refuse));
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
