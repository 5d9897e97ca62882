import type { Server } from "node:net";

/**
 * Lets a server listen on a loopback address, by default on a free port of 127.0.0.1, and returns its base URL, without a
 * slash at the end.
 */
export function listenOnLoopback(server: Server, at = { host: "127.0.0.1", port: 0 }): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(at.port, at.host, () => {
      const address = server.address();
      if (address === null || typeof address === "string") reject(new Error("the server has no port"));
      else resolve(`http://${at.host}:${address.port}`);
    });
  });
}
