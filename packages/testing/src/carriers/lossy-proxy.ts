import { connect, createServer } from "node:net";
import type { Address } from "./exchange.ts";
import { startOnLoopback } from "./listen-on-loopback.ts";

/** A proxy in front of a server, which loses what the server answers. */
export interface LossyProxy extends AsyncDisposable {
  /** Where it listens, as a gRPC target. */
  readonly target: string;
  /** How many connections were cut. */
  readonly cuts: number;
  /** How many connections are open. */
  readonly open: number;
  /** Whether a cut is to come. */
  readonly isArmed: boolean;
  /** Cuts the connection that brings the byte of the server after so many further ones, which still pass. */
  cutAfter(bytes: number): void;
}

/** Starts a proxy to a server, which cuts nothing until it is told to. */
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
      // The bytes before the cut arrive, as they may on a network that fails.
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
