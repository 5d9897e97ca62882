import { once } from "node:events";
import type { Server, Socket } from "node:net";
import type { Address } from "./exchange.ts";

/** Listens on a loopback address, by default a free port at 127.0.0.1, and returns the URL without a final slash. */
export const listenOnLoopback = (server: Server, at = { host: "127.0.0.1", port: 0 }): Promise<string> =>
  new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(at.port, at.host, () => {
      const address = server.address();
      if (address === null || typeof address === "string") reject(new Error("the server has no port"));
      else resolve(`http://${at.host}:${address.port}`);
    });
  });

/** A server on a loopback address. Dispose of the server with `await using`, which also closes its connections. */
export interface LoopbackServer {
  readonly baseUrl: string;
  readonly address: Address;
  readonly sockets: ReadonlySet<Socket>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts a server like {@link listenOnLoopback}. Ignores connection errors. */
export async function startOnLoopback(server: Server, at?: { host: string; port: number }): Promise<LoopbackServer> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket.on("error", () => undefined).on("close", () => sockets.delete(socket)));
  });
  const baseUrl = await listenOnLoopback(server, at);
  const { hostname, port } = new URL(baseUrl);
  return {
    baseUrl,
    address: { address: hostname, port: Number(port) },
    sockets,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** Opens a connection with its servers as properties. `await using` closes first the connection and then the servers. */
export async function withServer<
  Connection extends Disposable,
  Servers extends Readonly<Record<string, AsyncDisposable>>,
>(servers: Servers, open: () => Promise<Connection>): Promise<Connection & Servers & AsyncDisposable> {
  await using opened = new AsyncDisposableStack();
  for (const server of Object.values(servers)) opened.use(server);
  const connection = opened.use(await open());
  const all = opened.move();
  return Object.assign(connection, servers, { [Symbol.asyncDispose]: () => all.disposeAsync() });
}
