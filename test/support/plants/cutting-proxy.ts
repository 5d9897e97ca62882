import type { Socket } from "node:net";
import { namePrefix } from "../../../src/stores/postgres/server/session.ts";
import { type PostgresProxy, startPostgresProxy } from "./postgres-proxy.ts";

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
