import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { type BigIntStats, chmodSync, linkSync, lstatSync, renameSync, rmSync } from "node:fs";
import { type AddressInfo, connect, type Server } from "node:net";
import { dirname, join } from "node:path";

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
    if (!hasCode(reason, "EADDRINUSE")) throw reason;
    const found = lstatSync(path, { bigint: true, throwIfNoEntry: false });
    if (found !== undefined && !((await isLeftBehind(path, found)) && takeAway(path, found))) throw reason;
    await listenOn(server, path, mode);
  }
  return { address: path, port: 0 };
}

async function listenOn(server: Server, path: string, mode: number): Promise<void> {
  server.listen({ path });
  await once(server, "listening");
  // Until now the umask has decided. Changing that for a moment would change it for every thread.
  chmodSync(path, mode);
}

function hasCode(reason: unknown, code: string): boolean {
  return reason instanceof Error && "code" in reason && reason.code === code;
}

/** Whether what was found at a path is a socket that nobody listens on. */
async function isLeftBehind(path: string, found: BigIntStats): Promise<boolean> {
  if (!found.isSocket()) return false;
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const probe = connect({ path });
  probe.on("connect", () => resolve(false));
  probe.on("error", (reason) => resolve(hasCode(reason, "ECONNREFUSED") || hasCode(reason, "ENOENT")));
  try {
    return await promise;
  } finally {
    probe.destroy();
  }
}

/**
 * Removes a socket that was left behind, and returns whether it still was the one that was found: another process may
 * have replaced it since. So it is renamed first: under a name that only we know, nobody can replace it.
 */
export function takeAway(path: string, found: BigIntStats): boolean {
  const aside = join(dirname(path), `.${randomUUID()}`);
  try {
    renameSync(path, aside);
  } catch (reason) {
    // Another process has removed it.
    if (hasCode(reason, "ENOENT")) return true;
    throw reason;
  }
  // The mtime is compared too: an inode number may be reused, and renaming has changed the ctime.
  const { ino, mtimeNs } = lstatSync(aside, { bigint: true });
  const isThatOne = ino === found.ino && mtimeNs === found.mtimeNs;
  if (isThatOne) rmSync(aside);
  else putBack(aside, path);
  return isThatOne;
}

/** Gives a renamed file its name back, unless another process has used that name meanwhile. */
export function putBack(aside: string, path: string): void {
  try {
    linkSync(aside, path);
  } catch (reason) {
    // Not everything can be linked: Linux has a setting against it for files of other users (protected_hardlinks).
    if (!hasCode(reason, "EEXIST")) return renameSync(aside, path);
  }
  rmSync(aside);
}
