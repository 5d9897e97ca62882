import { once } from "node:events";
import type { Server } from "node:net";
import { usageOf } from "../native-process.ts";
import type { Usage } from "../running-server.ts";
import type { Reply, Request } from "../server-process.ts";

/** What a server program hands over once it listens. */
export interface Listening {
  readonly port: number;
  /** The process that serves, and is measured, where it is another one. */
  readonly pid?: number | undefined;
}

/**
 * Runs a server as the child of the driver: tells its port, then what it has used whenever it is asked.
 *
 * The process ends when the driver goes away, whatever the server still has open.
 */
export async function serve(start: () => Promise<Listening>): Promise<void> {
  const { port, pid } = await start();
  process.on("message", (request: Request) => {
    // A collection first, so that memory compares what is held, not what is not yet collected.
    if (request.kind === "settle") globalThis.gc?.();
    reply({ kind: "usage", ...(pid === undefined ? ownUsage() : usageOf(pid)) });
  });
  process.on("disconnect", () => process.exit(0));
  reply({ kind: "listening", port });
}

/** Has a server of node's listen on a free port of loopback. */
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
