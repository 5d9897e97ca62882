import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { type BigIntStats, chmodSync, linkSync, lstatSync, renameSync, rmSync } from "node:fs";
import { type AddressInfo, connect, type Server } from "node:net";
import { dirname, join } from "node:path";
import type { OptionNames } from "../options/index.ts";

/** Where to listen: a TCP port, or a Unix socket if there is a path. */
export interface BindOptions {
  /** The address to bind. Default 127.0.0.1, which only this machine can reach. */
  readonly host?: string;
  /** The port; 0, the default, picks a free one. */
  readonly port?: number;
  /** Lets several processes share the port. */
  readonly reusePort?: boolean;
  /**
   * A Unix socket's path, instead of host and port. A stale socket, whose process has exited, is replaced. A socket
   * that is in use, or any other file, fails with EADDRINUSE. Draining removes the socket.
   */
  readonly path?: string;
  /** The Unix socket's mode, which decides who may connect. Default 0o660: its owner and group. */
  readonly socketMode?: number;
}

/** All names in {@link BindOptions}. */
export const bindOptionNames: OptionNames<BindOptions> = {
  host: true,
  port: true,
  reusePort: true,
  path: true,
  socketMode: true,
};

/** The address that a server listens on. */
export interface BoundAddress {
  /** The IP address that the host was resolved to, or a Unix socket's path. */
  readonly address: string;
  /** 0 for a Unix socket. */
  readonly port: number;
}

const socketModeDefault = 0o660;

/** Makes a server listen. Rejects with the `net.Server` errors, such as EADDRINUSE. */
export async function bind(server: Server, options: BindOptions): Promise<BoundAddress> {
  const { host = "127.0.0.1", port = 0, reusePort = false, path, socketMode = socketModeDefault } = options;
  if (path !== undefined) return await bindPath(server, path, socketMode);
  server.listen({ host, port, reusePort });
  await once(server, "listening");
  const boundAddress = server.address() as AddressInfo;
  return { address: boundAddress.address, port: boundAddress.port };
}

async function bindPath(server: Server, path: string, mode: number): Promise<BoundAddress> {
  try {
    await listenOn(server, path, mode);
  } catch (reason) {
    if (!hasCode(reason, "EADDRINUSE")) throw reason;
    const fileStats = lstatSync(path, { bigint: true, throwIfNoEntry: false });
    if (fileStats !== undefined && !((await isStaleSocket(path, fileStats)) && removeStaleSocket(path, fileStats)))
      throw reason;
    await listenOn(server, path, mode);
  }
  return { address: path, port: 0 };
}

async function listenOn(server: Server, path: string, mode: number): Promise<void> {
  server.listen({ path });
  await once(server, "listening");
  // Until this call the socket has the mode that the umask allows. Changing the umask temporarily would affect all
  // threads.
  chmodSync(path, mode);
}

function hasCode(reason: unknown, code: string): boolean {
  return reason instanceof Error && "code" in reason && reason.code === code;
}

/** Returns whether the file found at a path is a socket that nobody listens on. */
async function isStaleSocket(path: string, found: BigIntStats): Promise<boolean> {
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
 * Removes a stale socket, and returns whether it was still the one found. Another process may have replaced it. The
 * socket is first renamed to a random name, under which no other process replaces it.
 */
export function removeStaleSocket(path: string, found: BigIntStats): boolean {
  const temporaryPath = join(dirname(path), `.${randomUUID()}`);
  try {
    renameSync(path, temporaryPath);
  } catch (reason) {
    // Another process has removed it.
    if (hasCode(reason, "ENOENT")) return true;
    throw reason;
  }
  // The mtime is also compared, because inode numbers are reused. The ctime cannot be, because renaming has changed it.
  const { ino, mtimeNs } = lstatSync(temporaryPath, { bigint: true });
  const isSame = ino === found.ino && mtimeNs === found.mtimeNs;
  if (isSame) rmSync(temporaryPath);
  else putBack(temporaryPath, path);
  return isSame;
}

/** Restores a renamed file's name, unless another process has meanwhile created a file with that name. */
export function putBack(aside: string, path: string): void {
  try {
    linkSync(aside, path);
  } catch (reason) {
    // Links may be forbidden. Linux's protected_hardlinks forbids links to other users' files.
    if (!hasCode(reason, "EEXIST")) return renameSync(aside, path);
  }
  rmSync(aside);
}
