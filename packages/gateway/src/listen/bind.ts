import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { type BigIntStats, chmodSync, linkSync, lstatSync, renameSync, rmSync } from "node:fs";
import { type AddressInfo, connect, type Server } from "node:net";
import { dirname, join } from "node:path";
import type { OptionNames } from "../options/index.ts";

/** Where to listen: a TCP port, or a Unix socket if there is a path. */
export interface BindOptions {
  /** The address to bind. Default 127.0.0.1: nothing beyond this machine can reach it. */
  readonly host?: string;
  /** The port; 0, the default, picks a free one. */
  readonly port?: number;
  /** Lets several processes share the port. */
  readonly reusePort?: boolean;
  /**
   * The path of a Unix socket, instead of host and port. A socket that a dead process left behind is replaced; one that
   * is still listened on fails with EADDRINUSE, and so does any other file. The drain removes the socket.
   */
  readonly path?: string;
  /** The mode of the Unix socket, which decides who may connect. Default 0o660: its owner and group. */
  readonly socketMode?: number;
}

/** The names of {@link BindOptions}. */
export const bindOptionNames: OptionNames<BindOptions> = {
  host: true,
  port: true,
  reusePort: true,
  path: true,
  socketMode: true,
};

/** The address that a server listens on. */
export interface BoundAddress {
  /** The IP address that the host was resolved to, or the path of a Unix socket. */
  readonly address: string;
  /** 0 for a Unix socket. */
  readonly port: number;
}

const socketModeDefault = 0o660;

/** Makes a server listen. Rejects with the errors of `net.Server`, such as EADDRINUSE. */
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
    if (found !== undefined && !((await isLeftBehind(path, found)) && removeStaleSocket(path, found))) throw reason;
    await listenOn(server, path, mode);
  }
  return { address: path, port: 0 };
}

async function listenOn(server: Server, path: string, mode: number): Promise<void> {
  server.listen({ path });
  await once(server, "listening");
  // Until here the umask decides. To change that for a moment would change it for every thread.
  chmodSync(path, mode);
}

function hasCode(reason: unknown, code: string): boolean {
  return reason instanceof Error && "code" in reason && reason.code === code;
}

/** Returns whether the file found at a path is a socket that nobody listens on. */
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
 * Removes a socket that was left behind, and returns whether it was still the one found: another process may have
 * replaced it. It is renamed first, to a name that only we know, under which nobody can replace it.
 */
export function removeStaleSocket(path: string, found: BigIntStats): boolean {
  const aside = join(dirname(path), `.${randomUUID()}`);
  try {
    renameSync(path, aside);
  } catch (reason) {
    // Another process has removed it.
    if (hasCode(reason, "ENOENT")) return true;
    throw reason;
  }
  // The mtime is compared too, because inode numbers are reused; not the ctime, which renaming has changed.
  const { ino, mtimeNs } = lstatSync(aside, { bigint: true });
  const isThatOne = ino === found.ino && mtimeNs === found.mtimeNs;
  if (isThatOne) rmSync(aside);
  else putBack(aside, path);
  return isThatOne;
}

/** Gives a renamed file its name back, unless another process has taken it meanwhile. */
export function putBack(aside: string, path: string): void {
  try {
    linkSync(aside, path);
  } catch (reason) {
    // A link may be forbidden: Linux's protected_hardlinks does so for files of other users.
    if (!hasCode(reason, "EEXIST")) return renameSync(aside, path);
  }
  rmSync(aside);
}
