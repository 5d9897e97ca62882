import { once } from "node:events";
import type { Server } from "node:net";
import { usageOf } from "../native-process.ts";
import type { Usage } from "../running-server.ts";
import type { Reply, Request } from "../server-process.ts";

/** A server that listens. */
export interface Listening {
  readonly port: number;
  /** The id of the process to measure, if another process serves. */
  readonly pid?: number | undefined;
}

/**
 * Runs a server as the driver's child process. Sends the server's port to the driver, and the server's usage for each
 * request from the driver.
 *
 * The process exits when the driver disconnects, even with open connections.
 */
export async function serve(start: () => Promise<Listening>): Promise<void> {
  const { port, pid } = await start();
  process.on("message", (request: Request) => {
    // Garbage is collected first, so that only reachable memory is compared.
    if (request.kind === "settle") globalThis.gc?.();
    reply({ kind: "usage", ...(pid === undefined ? ownUsage() : usageOf(pid)) });
  });
  process.on("disconnect", () => process.exit(0));
  reply({ kind: "listening", port });
}

/** Starts to listen on a free loopback port. */
export async function listen(server: Server): Promise<Listening> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server does not listen on TCP");
  return address;
}

function ownUsage(): Usage {
  const { user, system } = process.cpuUsage();
  return { cpuUs: user + system, rssBytes: process.memoryUsage.rss() };
}

function reply(message: Reply): void {
  process.send?.(message);
}
