import { once } from "node:events";
import { createServer } from "node:net";

// The ports are below the ephemeral ports, which clients in other tests use.
const [firstPort, lastPort] = [10_000, 32_000];

/** Returns a loopback port that was free a moment ago, for programs that cannot choose a port. */
export async function freePort(): Promise<number> {
  const port = firstPort + Math.trunc(Math.random() * (lastPort - firstPort));
  const server = createServer().listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch (fault) {
    if (!(fault instanceof Error && "code" in fault && fault.code === "EADDRINUSE")) throw fault;
    return await freePort();
  }
  server.close();
  await once(server, "close");
  return port;
}
