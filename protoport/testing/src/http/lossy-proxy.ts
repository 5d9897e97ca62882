import { connect, createServer } from "node:net";
import type { Address } from "./exchange.ts";
import { startOnLoopback } from "./listen-on-loopback.ts";

/** A proxy in front of a server that can lose its responses. */
export interface LossyProxy extends AsyncDisposable {
  /** The proxy's address, as a gRPC target. */
  readonly target: string;
  readonly cuts: number;
  readonly open: number;
  readonly isArmed: boolean;
  /** Cuts a connection after the server has sent this many further bytes, which are still forwarded. */
  cutAfter(bytes: number): void;
}

/** Starts a proxy to a server. The proxy cuts no connection before {@link LossyProxy.cutAfter} is called. */
export async function startLossyProxy(server: Address): Promise<LossyProxy> {
  let bytesLeft = Number.POSITIVE_INFINITY;
  let cuts = 0;
  let open = 0;
  const proxy = createServer({ noDelay: true }, (client) => {
    const upstream = connect({ host: server.address, port: server.port, noDelay: true });
    open++;
    client.on("close", () => open--);
    const close = (): void => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) socket.on("error", close).on("close", close);
    client.on("data", (data) => upstream.write(data));
    upstream.on("data", (data: Buffer) => {
      if (data.length <= bytesLeft) {
        bytesLeft -= data.length;
        client.write(data);
        return;
      }
      // The client gets the bytes before the cut, as on a failing network.
      client.end(data.subarray(0, bytesLeft));
      upstream.destroy();
      bytesLeft = Number.POSITIVE_INFINITY;
      cuts++;
    });
  });
  const { baseUrl, [Symbol.asyncDispose]: end } = await startOnLoopback(proxy);
  return {
    target: new URL(baseUrl).host,
    get cuts() {
      return cuts;
    },
    get open() {
      return open;
    },
    get isArmed() {
      return bytesLeft !== Number.POSITIVE_INFINITY;
    },
    cutAfter: (bytes) => {
      bytesLeft = bytes;
    },
    [Symbol.asyncDispose]: end,
  };
}
