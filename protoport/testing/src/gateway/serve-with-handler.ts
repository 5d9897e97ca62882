import { createServer as createHttp1Server } from "node:http";
import { createSecureServer, createServer as createHttp2Server } from "node:http2";
import { createServer, type Socket } from "node:net";
import { bind } from "../../../gateway/src/engine/bind.ts";
import { detectProtocol, putBack } from "../../../gateway/src/engine/first-bytes.ts";
import type { Gateway, ListenOptions } from "../../../gateway/src/index.ts";

/** Returns a gateway that serves with `handler` on node:http and node:http2, on one port, with its limits. */
export function serveWithHandler(gateway: Gateway): Gateway {
  const { handler, checkContinue } = gateway;
  const http1Options = { maxHeaderSize: 64 * 1024, requireHostHeader: false, keepAliveTimeout: 75_000 };
  const http1 = createHttp1Server(http1Options, handler).on("checkContinue", checkContinue);
  const http2 = createHttp2Server(handler).on("checkContinue", checkContinue);
  const sockets = new Set<Socket>();
  const open = { http1: 0, http2: 0 };
  const track = (version: keyof typeof open) => (_: unknown, response: NodeJS.EventEmitter) => {
    open[version] += 1;
    response.once("close", () => (open[version] -= 1));
  };
  http1.prependListener("request", track("http1")).prependListener("checkContinue", track("http1"));
  http2.prependListener("request", track("http2")).prependListener("checkContinue", track("http2"));
  const accept = (socket: Socket): void => {
    detectProtocol(socket, firstBytesTimeoutMs, (protocol, bytes) => {
      putBack(socket, bytes);
      (protocol === "http2" ? http2 : http1).emit("connection", socket);
    });
  };
  let server: ReturnType<typeof createServer> | undefined;
  const close = async (): Promise<void> => {
    server?.close();
    for (const socket of sockets) socket.destroy();
    await gateway.close();
  };
  const listen = async ({ tls, ...options }: ListenOptions = {}): ReturnType<Gateway["listen"]> => {
    server =
      tls === undefined
        ? createServer({ noDelay: true }, accept)
        : createSecureServer({ ...tls, ...http1Options, allowHTTP1: true }, handler).on("checkContinue", checkContinue);
    server.on("connection", (socket: Socket) => {
      sockets.add(socket.on("error", () => socket.destroy()));
      socket.on("close", () => sockets.delete(socket));
    });
    return await bind(server, options);
  };
  return {
    ...gateway,
    get routes() {
      return gateway.routes;
    },
    get load() {
      return { ...gateway.load, requests: open };
    },
    listen,
    drain: close,
    close,
  };
}

/** Milliseconds to wait for the bytes that show the HTTP version. */
const firstBytesTimeoutMs = 60_000;
