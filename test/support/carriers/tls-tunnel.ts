import { once } from "node:events";
import { connect as connectTcp, createServer, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { Certificate } from "./certificate.ts";
import type { Address } from "./exchange.ts";

/** A port for clients in clear whose bytes go on by TLS. */
export interface TlsTunnel {
  readonly address: Address;
  close(): void;
}

/**
 * Opens a tunnel to a server of TLS, so that whatever tests say in clear reaches it encrypted, with HTTP/2 by ALPN. Ends
 * and resets of one side are passed on to the other.
 */
export async function openTlsTunnel(to: Address, { cert }: Certificate): Promise<TlsTunnel> {
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
    open.add(near);
    near.once("data", (first: Buffer) => {
      const protocol = first.toString("latin1").startsWith("PRI") ? "h2" : "http/1.1";
      const raw = connectTcp({ host: to.address, port: to.port, noDelay: true, allowHalfOpen: true });
      const far = connectTls({ socket: raw, servername: "localhost", ca: cert, ALPNProtocols: [protocol] });
      open.add(raw);
      far.write(first);
      near.pipe(far).pipe(near);
      far.on("error", () => undefined);
      near.on("error", () => raw.resetAndDestroy()).on("close", () => raw.destroy());
      raw.on("error", () => near.resetAndDestroy()).on("close", () => near.destroy());
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the tunnel has no port");
  return {
    address,
    close: () => {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}
