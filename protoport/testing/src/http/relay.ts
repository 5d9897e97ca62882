import { connect, createServer, type Socket } from "node:net";
import type { Address } from "./exchange.ts";
import { startOnLoopback } from "./listen-on-loopback.ts";

/** A TCP relay in front of a server. The relay can simulate that the server's machine is lost. */
export interface Relay extends AsyncDisposable {
  readonly baseUrl: string;
  /** Discards all further bytes from both sides without closing their connections. New connections are accepted. */
  stall(): void;
}

export async function startRelay(server: Address): Promise<Relay> {
  let isStalled = false;
  const forward = (from: Socket, to: Socket): void => {
    from.on("data", (data) => void (isStalled || to.write(data)));
    from.on("error", () => undefined).on("close", () => void (isStalled || to.destroy()));
  };
  const sockets = new Set<Socket>();
  const relay = createServer({ noDelay: true }, (client) => {
    const upstream = connect({ host: server.address, port: server.port, noDelay: true });
    sockets.add(upstream);
    forward(client, upstream);
    forward(upstream, client);
  });
  const { baseUrl, [Symbol.asyncDispose]: close } = await startOnLoopback(relay);
  return {
    baseUrl,
    stall: () => {
      isStalled = true;
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await close();
    },
  };
}
