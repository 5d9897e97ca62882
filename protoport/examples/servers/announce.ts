import type { Server } from "node:net";

/** Listens on the port of the command line, by default 8080, and prints the URL. */
export function announce(server: Server): void {
  server.listen(Number(process.argv[2] ?? 8080), "127.0.0.1", () => {
    const address = server.address();
    if (address !== null && typeof address === "object") console.log(`http://127.0.0.1:${String(address.port)}`);
  });
}
