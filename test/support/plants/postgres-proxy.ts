import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A proxy in front of the socket of a PostgreSQL server. */
export interface PostgresProxy extends AsyncDisposable {
  /** The folder of its socket, in place of the server's. */
  readonly socketFolder: string;
  /** The open sockets, to clients and to the server. */
  readonly sockets: ReadonlySet<Socket>;
}

/**
 * Starts a proxy to the server whose socket is in `serverFolder`.
 *
 * @param pass - passes on what a client and the server say to each other; the end of one is the end of the other
 * @param port - the number in the name of the socket
 */
export async function startPostgresProxy(
  serverFolder: string,
  pass: (client: Socket, server: Socket) => void,
  port = 5432,
): Promise<PostgresProxy> {
  const socketName = `.s.PGSQL.${port}`;
  const folder = mkdtempSync(join(tmpdir(), "plantstore-proxy-"));
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
