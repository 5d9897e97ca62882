import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { type BigIntStats, chmodSync, linkSync, lstatSync, renameSync, rmSync } from "node:fs";
import { type AddressInfo, connect, type Server } from "node:net";
import { dirname, join } from "node:path";
import type { OptionNames } from "../http/index.ts";

/** Options for the address to listen on: a TCP port, or a Unix socket if `path` is set. */
export interface BindOptions {
  /** The address to bind. Default 127.0.0.1, which only the local machine can reach. */
  readonly host?: string;
  /** The TCP port. Default 0, which selects a free port. */
  readonly port?: number;
  /** Whether several processes can listen on the same port. */
  readonly reusePort?: boolean;
  /**
   * The path for a Unix socket, instead of host and port. A stale socket from an exited process is replaced. A socket
   * that is in use, or any other file at the path, causes EADDRINUSE. A graceful shutdown removes the socket.
   */
  readonly path?: string;
  /** The file mode of the Unix socket, which decides who may connect. Default 0o660, for the file's owner and group. */
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

/** The address on which a server listens. */
export interface BoundAddress {
  /** The IP address to which the host was resolved, or the path of a Unix socket. */
  readonly address: string;
  /** The TCP port, or 0 for a Unix socket. */
  readonly port: number;
}

const socketModeDefault = 0o660;

/** Makes a server listen. Rejects with errors from `net.Server`, such as EADDRINUSE. */
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
    if (!hasErrorCode(reason, "EADDRINUSE")) throw reason;
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
  try {
    // Until now, the umask determines the socket's mode. Changing the umask temporarily would affect all threads.
    chmodSync(path, mode);
  } catch (reason) {
    server.close();
    throw reason;
  }
}

function hasErrorCode(reason: unknown, code: string): boolean {
  return reason instanceof Error && "code" in reason && reason.code === code;
}

/** Returns whether the file at a path is a Unix socket on which no process listens. */
async function isStaleSocket(path: string, stats: BigIntStats): Promise<boolean> {
  if (!stats.isSocket()) return false;
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const probe = connect({ path });
  probe.on("connect", () => resolve(false));
  probe.on("error", (reason) => resolve(hasErrorCode(reason, "ECONNREFUSED") || hasErrorCode(reason, "ENOENT")));
  try {
    return await promise;
  } finally {
    probe.destroy();
  }
}

/**
 * Removes a stale socket. Returns `false` if another process has replaced the socket since the check. Renames the
 * socket to a random name first, so that no other process can replace the file before its removal.
 */
export function removeStaleSocket(path: string, stats: BigIntStats): boolean {
  const temporaryPath = join(dirname(path), `.${randomUUID()}`);
  try {
    renameSync(path, temporaryPath);
  } catch (reason) {
    // Another process has removed the stale socket.
    if (hasErrorCode(reason, "ENOENT")) return true;
    throw reason;
  }
  // Compares the mtime too, because inode numbers are reused. Renaming changes the ctime, but not the mtime.
  const { ino, mtimeNs } = lstatSync(temporaryPath, { bigint: true });
  const isSame = ino === stats.ino && mtimeNs === stats.mtimeNs;
  if (isSame) rmSync(temporaryPath);
  else restoreFile(temporaryPath, path);
  return isSame;
}

/** Restores the name of a renamed file, unless another process has created a file with that name. */
export function restoreFile(temporaryPath: string, path: string): void {
  try {
    linkSync(temporaryPath, path);
  } catch (reason) {
    // Renames the file if links are forbidden. Linux's protected_hardlinks forbids links to other users' files.
    if (!hasErrorCode(reason, "EEXIST")) return renameSync(temporaryPath, path);
  }
  rmSync(temporaryPath);
}
