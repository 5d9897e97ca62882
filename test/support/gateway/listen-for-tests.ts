import { createServer } from "node:http2";
import type { Gateway, ListenOptions } from "../../../src/gateway/index.ts";
import { createCertificate } from "../carriers/certificate.ts";
import type { Address } from "../carriers/exchange.ts";
import { listenOnLoopback } from "../carriers/listen-on-loopback.ts";
import { openTlsTunnel } from "../carriers/tls-tunnel.ts";

/** What serves HTTP/2: the gateway itself, or a server of node:http2 in which its handler is mounted. */
export const http2Servers = ["own", "mounted"] as const;

/** One of the {@link http2Servers}. */
export type Http2Server = (typeof http2Servers)[number];

/** Where a gateway listens, and what serves HTTP/2 there: "own" by default. A mounted one speaks nothing else. */
export interface TestListenOptions extends ListenOptions {
  readonly http2?: Http2Server;
}

/** A gateway that listens. */
export interface Listening {
  /** Where clients in clear reach it. */
  readonly address: Address;
  /** How many requests are open. */
  openRequests(): number;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Whether tables of rows in clear are to go through a tunnel of TLS: `npm run test:tls`. */
const byTls = process.env["TEST_TLS"] === "1";
const certificate = createCertificate("tests");

/** Lets a gateway listen, behind a tunnel of TLS where that is wanted and nothing else is said of where. */
export async function listenForTests(
  gateway: Gateway,
  { http2, ...options }: TestListenOptions = {},
): Promise<Listening> {
  if (http2 === "mounted") return await mount(gateway);
  const openRequests = (): number => gateway.load.requests.http1 + gateway.load.requests.http2;
  const close = (): Promise<void> => gateway.close();
  if (!byTls || options.path !== undefined || options.tls !== undefined) {
    return { address: await gateway.listen(options), openRequests, [Symbol.asyncDispose]: close };
  }
  const tunnel = await openTlsTunnel(await gateway.listen({ ...options, tls: certificate }), certificate);
  return {
    address: tunnel.address,
    openRequests,
    [Symbol.asyncDispose]: () => close().finally(() => tunnel.close()),
  };
}

/** Mounts a gateway in a server of node:http2, in clear, which leaves it to the gateway to ask for bodies that wait. */
async function mount(gateway: Gateway): Promise<Listening> {
  const server = createServer(gateway.handler).on("checkContinue", gateway.handler);
  let open = 0;
  server.on("stream", (stream) => {
    open += 1;
    stream.once("close", () => (open -= 1));
  });
  const { hostname, port } = new URL(await listenOnLoopback(server));
  return {
    address: { address: hostname, port: Number(port) },
    openRequests: () => open,
    async [Symbol.asyncDispose]() {
      server.close();
      await gateway.close();
    },
  };
}
