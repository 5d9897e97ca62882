import { connect, createServer, type Socket } from "node:net";
import { namePrefix } from "../../../src/stores/postgres/server/session.ts";
import { mkdtempSync, rmSync } from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * When a connection is cut. `before-send`: the server never receives the statement. `after-send`: the server is
 * running the statement. `before-reply`: the server has committed and responded.
 */
export type Cut = "before-send" | "after-send" | "before-reply";

/** A proxy in front of a PostgreSQL server, which cuts connections at a given moment. */
export interface CuttingProxy extends PostgresProxy {
  readonly cuts: number;
  /** Cuts at the next statement that deletes any plant, or any of `ids` if given. Resolves after the cut. */
  cutNext(cut: Cut, ids?: readonly bigint[]): Promise<void>;
  /** Stops forwarding without closing connections, like a server whose machine has lost power. */
  freeze(): void;
}

// Identifies a batch's statement by its text, or by the prefix of its name.
const deletes = ["WITH free AS", namePrefix];

/** Starts a proxy to the server whose socket is in `serverFolder`. */
export async function startCuttingProxy(serverFolder: string, port?: number): Promise<CuttingProxy> {
  let armed: { readonly cut: Cut; readonly ids: string; readonly done: () => void } | undefined;
  let cuts = 0;
  let isFrozen = false;

  const pass = (client: Socket, server: Socket): void => {
    const cutNow = (done: () => void): void => {
      cuts++;
      client.destroy();
      done();
    };
    let onReply: (() => void) | undefined;
    if (isFrozen) return;
    client.on("data", (data) => {
      const here = deletes.some((mark) => data.includes(mark)) ? armed : undefined;
      if (here === undefined || !data.includes(here.ids)) return void server.write(data);
      armed = undefined;
      if (here.cut === "before-send") return cutNow(here.done);
      if (here.cut === "before-reply") onReply = () => cutNow(here.done);
      server.write(data, () => {
        if (here.cut === "after-send") cutNow(here.done);
      });
    });
    server.on("data", (data) => {
      if (onReply === undefined) client.write(data);
      else onReply();
    });
  };
  const proxy = await startPostgresProxy(serverFolder, pass, port);

  return {
    ...proxy,
    get cuts() {
      return cuts;
    },
    freeze: () => {
      isFrozen = true;
      for (const socket of proxy.sockets) socket.pause();
    },
    cutNext: (cut, ids = []) => new Promise((resolve) => (armed = { cut, ids: ids.join(), done: resolve })),
  };
}

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
