import { socketPathOf } from "./setting-types.ts";
import type { Configuration } from "./settings.ts";

/**
 * Returns a readable error for a `listen` error. The message names the setting to change. The error's `cause` is the
 * system error ("listen EADDRINUSE: …"). Other errors are returned unchanged.
 */
export function explainListenError(reason: unknown, { host, port }: Pick<Configuration, "host" | "port">): unknown {
  if (!isListenError(reason)) return reason;
  const path = socketPathOf(host);
  const text = path === undefined ? problemOfPort(reason, host, port) : problemOfSocket(reason, path);
  return new Error(text, { cause: reason });
}

/** A Node.js system error with a code. */
type SystemError = Error & { readonly code: unknown };

function isListenError(reason: unknown): reason is SystemError {
  const syscall = reason instanceof Error && "code" in reason && "syscall" in reason ? reason.syscall : undefined;
  // In a worker of node:cluster, the call is "bind".
  return syscall === "listen" || syscall === "bind" || syscall === "getaddrinfo";
}

function problemOfPort({ code, message }: SystemError, host: string, port: number): string {
  const address = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
  const otherPort = port < 65_535 ? port + 1 : port - 1;
  if (code === "EADDRINUSE")
    return `cannot listen on ${address}: the port is in use; choose another port, such as PORT=${otherPort}`;
  if (code === "EACCES")
    return `cannot listen on ${address}: permission denied for this user; choose a higher PORT, such as 8080`;
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND" || code === "EAI_AGAIN")
    return `HOST must be an address of this machine, got ${JSON.stringify(host)}`;
  return `cannot listen on HOST: ${message}`;
}

function problemOfSocket({ code, message }: SystemError, path: string): string {
  if (code === "EADDRINUSE") return `cannot listen on HOST: ${path} is in use, or is not a socket`;
  // libuv also reports EACCES for a missing directory.
  if (code === "EACCES")
    return `cannot listen on HOST: the directory of ${path} does not exist, or this user may not write to it`;
  return `cannot listen on HOST: ${message}`;
}
