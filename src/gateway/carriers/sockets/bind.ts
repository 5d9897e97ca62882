import { once } from "node:events";
import { chmodSync, lstatSync, rmSync } from "node:fs";
import { type AddressInfo, connect, type Server } from "node:net";

/** Where to listen: a TCP port, or a Unix socket if there is a path. */
export interface BindOptions {
  /** The address to bind. Default 127.0.0.1: nothing beyond this machine can reach it. */
  readonly host?: string;
  /** The port; 0, the default, picks a free one. */
  readonly port?: number;
  /** Lets several processes share the port. */
  readonly reusePort?: boolean;
  /**
   * The path of a Unix socket, instead of host and port. One that a process left behind when it died is replaced; one
   * that somebody listens on is EADDRINUSE, and so is a file of another kind. The socket is removed by the drain.
   */
  readonly path?: string;
  /** Who may connect to the Unix socket: its mode. Default 0o660, its owner and its group. */
  readonly socketMode?: number;
}

/** What a server listens on. */
export interface BoundAddress {
  /** The IP address that the host was resolved to, or the path of a Unix socket. */
  readonly address: string;
  /** 0 for a Unix socket. */
  readonly port: number;
}

const socketModeDefault = 0o660;

/** Has a server listen. Rejects with the errors of `net.Server`, such as EADDRINUSE. */
export async function bind(server: Server, options: BindOptions): Promise<BoundAddress> {
  const { host = "127.0.0.1", port = 0, reusePort = false, path, socketMode = socketModeDefault } = options;
  if (path !== undefined) return await bindPath(server, path, socketMode);
  server.listen({ host, port, reusePort });
  await once(server, "listening");
  const bound = server.address() as AddressInfo;
  return { address: bound.address, port: bound.port };
}

async function bindPath(server: Server, path: string, mode: number): Promise<BoundAddress> {
  try {
    await listenOn(server, path, mode);
  } catch (reason) {
    if (!isInUse(reason) || !(await isLeftBehind(path))) throw reason;
    rmSync(path, { force: true });
    await listenOn(server, path, mode);
  }
  return { address: path, port: 0 };
}

async function listenOn(server: Server, path: string, mode: number): Promise<void> {
  server.listen({ path });
  await once(server, "listening");
  // Until here the umask decides: another one for a moment would be that of every thread.
  chmodSync(path, mode);
}

function isInUse(reason: unknown): boolean {
  return reason instanceof Error && "code" in reason && reason.code === "EADDRINUSE";
}

/** Whether a path is a socket that nobody listens on. */
async function isLeftBehind(path: string): Promise<boolean> {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSocket() === false) return false;
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const probe = connect({ path });
  probe.on("connect", () => resolve(false));
  probe.on("error", (reason) =>
    resolve("code" in reason && (reason.code === "ECONNREFUSED" || reason.code === "ENOENT")),
  );
  try {
    return await promise;
  } finally {
    probe.destroy();
  }
}
