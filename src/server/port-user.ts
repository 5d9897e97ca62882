import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { connect, createServer } from "node:net";
import { type AdminAddress, socketPathOf, toConnectHost } from "./setting-types.ts";

/** Milliseconds for a response. A plant store under load may need seconds, and other programs may never respond. */
const responseTimeoutMs = 3_000;

/** The challenge in a plant store's response to a request without a credential. */
const ownChallenge = /^Bearer realm="plantstore"/;

/** The starts of connections. A running plant store may have other settings for TLS and the PROXY protocol. */
const connectionStarts = ["", "PROXY UNKNOWN\r\n"].flatMap((header) => [false, true].map((tls) => ({ header, tls })));

/** Returns a warning if a TCP port is in use, and no plant store responds there. */
export async function describePortUser({ host, port }: AdminAddress): Promise<string | undefined> {
  if (socketPathOf(host) !== undefined || port === 0) return undefined;
  const problem = await listenBriefly(host, port);
  if (problem?.code !== "EADDRINUSE" || (await isPlantStore(host, port))) return undefined;
  return `port ${port} is in use, and no plant store responds; stop the program that uses it, or choose another PORT`;
}

/** Listens on a port, or on a free port for 0, and stops immediately. Returns the error if listening fails. */
export async function listenBriefly(host: string, port: number): Promise<NodeJS.ErrnoException | undefined> {
  const { promise, resolve } = Promise.withResolvers<Error | undefined>();
  const server = createServer().once("error", resolve);
  server.listen({ host, port }, () => server.close(() => resolve(undefined)));
  return await promise;
}

async function isPlantStore(host: string, port: number): Promise<boolean> {
  // Imports the clients on demand, because `serve` does not need them.
  const [{ get }, { connect: connectTls }] = await Promise.all([import("node:http"), import("node:tls")]);
  const done = new AbortController();
  const signal = AbortSignal.any([done.signal, AbortSignal.timeout(responseTimeoutMs)]);
  const requests = connectionStarts.map(async ({ header, tls }) => {
    const socket = connect({ host: toConnectHost(host), port, signal }).on("error", () => undefined);
    socket.write(header);
    const createConnection = () => (tls ? connectTls({ socket, rejectUnauthorized: false }) : socket);
    const request = get({ path: "/plants", createConnection, signal }).on("error", () => undefined);
    const [response]: IncomingMessage[] = await once(request, "response");
    if (!ownChallenge.test(response?.headers["www-authenticate"] ?? "")) throw new Error("another challenge");
  });
  return await Promise.any(requests)
    .then(() => true)
    .catch(() => false)
    .finally(() => done.abort());
}
