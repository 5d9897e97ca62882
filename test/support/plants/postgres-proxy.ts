import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A proxy in front of a PostgreSQL server's socket. */
export interface PostgresProxy extends AsyncDisposable {
  /** Its socket's folder, in place of the server's. */
  readonly socketFolder: string;
  /** The open sockets, to clients and to the server. */
  readonly sockets: ReadonlySet<Socket>;
}

/** Starts a proxy to the server in `serverFolder`. @param pass - forwards data @param port - of the socket's name */
export async function startPostgresProxy(
  serverFolder: string,
  pass: (client: Socket, server: Socket) => void,
  port = 5432,
): Promise<PostgresProxy> {
  const socketName = `.s.PGSQL.${port}`;
  const folder = mkdtempSync(join(tmpdir(), "protoport-"));
  const sockets = new Set<Socket>();
  const proxy = createServer((client) => {
    const server = connect(join(serverFolder, socketName));
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        sockets.delete(socket);
        client.destroy();
        server.destroy();
      });
    }
    pass(client, server);
  });
  proxy.listen(join(folder, socketName));
  await once(proxy, "listening");
  return {
    socketFolder: folder,
    sockets,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      proxy.close();
      await once(proxy, "close");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A proxy that makes clients hang before they commit. */
export type HangingProxy = PostgresProxy & { readonly hangs: Promise<void> };

/** Starts a proxy like {@link startPostgresProxy} that forwards everything except `COMMIT`. */
export async function startHangingProxy(serverFolder: string, port?: number): Promise<HangingProxy> {
  const { promise: hangs, resolve } = Promise.withResolvers<void>();
  const proxy = await startPostgresProxy(
    serverFolder,
    (client, server) => {
      client.on("data", (data) => (data.includes("COMMIT\0") ? resolve() : server.write(data)));
      server.pipe(client);
    },
    port,
  );
  return { ...proxy, hangs };
}
