import { createServer as createHttp2Server } from "node:http2";
import { connect as connectTcp, createServer } from "node:net";
import { connect as connectTls } from "node:tls";
import type { Gateway, ListenOptions } from "../../../gateway/src/index.ts";
import { type Certificate, createCertificate } from "../carriers/certificate.ts";
import type { Address } from "../carriers/exchange.ts";
import { type LoopbackServer, startOnLoopback } from "../carriers/listen-on-loopback.ts";

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

/** Whether tables of rows in clear are to go through a tunnel of TLS: `npm run suite -- tls`. */
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
    async [Symbol.asyncDispose]() {
      await close();
      await tunnel[Symbol.asyncDispose]();
    },
  };
}

/** Mounts a gateway in a server of node:http2, in clear, which leaves it to the gateway to ask for bodies that wait. */
async function mount(gateway: Gateway): Promise<Listening> {
  const server = createHttp2Server(gateway.handler).on("checkContinue", gateway.checkContinue);
  let open = 0;
  server.on("stream", (stream) => {
    open += 1;
    stream.once("close", () => (open -= 1));
  });
  const { address, [Symbol.asyncDispose]: close } = await startOnLoopback(server);
  return {
    address,
    openRequests: () => open,
    async [Symbol.asyncDispose]() {
      await close();
      await gateway.close();
    },
  };
}

/**
 * Opens a tunnel to a server of TLS, so that whatever tests say in clear reaches it encrypted, with HTTP/2 by ALPN. Ends
 * and resets of one side are passed on to the other.
 */
async function openTlsTunnel(to: Address, { cert }: Certificate): Promise<LoopbackServer> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
    near.once("data", (first: Buffer) => {
      const protocol = first.toString("latin1").startsWith("PRI") ? "h2" : "http/1.1";
      const raw = connectTcp({ host: to.address, port: to.port, noDelay: true, allowHalfOpen: true });
      const far = connectTls({ socket: raw, servername: "localhost", ca: cert, ALPNProtocols: [protocol] });
      far.write(first);
      near.pipe(far).pipe(near);
      far.on("error", () => undefined);
      near.on("error", () => raw.resetAndDestroy()).on("close", () => raw.destroy());
      raw.on("error", () => near.resetAndDestroy()).on("close", () => near.destroy());
    });
  });
  return await startOnLoopback(server);
}
