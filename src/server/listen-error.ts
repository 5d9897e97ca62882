import { type AdminAddress, socketPathOf } from "./setting-types.ts";

/** Explains errors of listening with their setting (default `PORT` or `HOST`) and `cause`. Returns others unchanged. */
export function explainListenError(reason: unknown, { host, port }: AdminAddress, variable?: string): unknown {
  const code = codeOfListening(reason);
  if (!(reason instanceof Error) || code === undefined) return reason;
  const path = socketPathOf(host);
  const problems = path === undefined ? problemsOfPort(host, port) : problemsOfSocket(path);
  const setting = path === undefined && ["EADDRINUSE", "EACCES"].includes(code) ? "PORT" : "HOST";
  return new Error(`cannot listen on ${variable ?? setting}: ${problems[code] ?? reason.message}`, { cause: reason });
}

function codeOfListening(reason: unknown): string | undefined {
  if (!(reason instanceof Error && "code" in reason && "syscall" in reason)) return undefined;
  // In a worker of node:cluster, the call is "bind".
  return ["listen", "bind", "getaddrinfo"].includes(String(reason.syscall)) ? String(reason.code) : undefined;
}

function problemsOfPort(host: string, port: number): Readonly<Record<string, string>> {
  const notLocal = `it must be an address of this machine, got ${JSON.stringify(host)}`;
  return {
    EADDRINUSE: `port ${port} of ${host} is in use; choose another port, such as ${port < 65_535 ? port + 1 : port - 1}`,
    EACCES: `this user may not use port ${port}; choose a higher port, such as 8080`,
    EADDRNOTAVAIL: notLocal,
    ENOTFOUND: notLocal,
    EAI_AGAIN: notLocal,
  };
}

function problemsOfSocket(path: string): Readonly<Record<string, string>> {
  return {
    EADDRINUSE: `${path} is in use, or is not a socket`,
    // libuv also reports EACCES for a missing directory.
    EACCES: `the directory of ${path} does not exist, or this user may not write to it`,
  };
}
