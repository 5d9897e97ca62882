import type { Server } from "node:net";

/** Lets a server listen on a free port of the loopback address and returns its base URL, without a slash at the end. */
export function listenOnLoopback(server: Server): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      if (address === null || typeof address === "string") reject(new Error("the server has no port"));
      else resolve(`http://127.0.0.1:${address.port}`);
    });
  });
}
