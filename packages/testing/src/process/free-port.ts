import { once } from "node:events";
import { createServer } from "node:net";

// Below those that systems give to clients, of which many connect while other tests run.
const [firstPort, lastPort] = [10_000, 32_000];

/** Returns a port of the loopback that was free a moment ago, for what can only be told one. */
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
