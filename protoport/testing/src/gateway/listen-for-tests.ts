import { createServer as createHttp2Server } from "node:http2";
import { connect as connectTcp, createServer } from "node:net";
import { connect as connectTls } from "node:tls";
import type { Gateway, ListenOptions } from "../../../gateway/src/index.ts";
import { type Certificate, createCertificate } from "../http/certificate.ts";
import type { Address } from "../http/exchange.ts";
import { type LoopbackServer, startOnLoopback } from "../http/listen-on-loopback.ts";

/** The servers for HTTP/2: the gateway itself, or a node:http2 server in which the gateway's handler is mounted. */
export const http2Servers = ["listening", "mounted"] as const;

/** An item in {@link http2Servers}. */
export type Http2Server = (typeof http2Servers)[number];

/** Listen options, and the HTTP/2 server. The default is "listening". A mounted server supports only HTTP/2. */
export interface TestListenOptions extends ListenOptions {
  readonly http2?: Http2Server;
}

/** A listening gateway. */
export interface Listening {
  /** The address for clients without TLS. */
  readonly address: Address;
  /** Returns the number of open requests. */
  openRequests(): number;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Whether plaintext test cases use a TLS tunnel, as in `npm run suite -- tls`. */
const byTls = process.env["TEST_TLS"] === "1";
const certificate = createCertificate("tests");

/** Starts listening, behind a TLS tunnel if tunnels are enabled and the options set neither path nor TLS. */
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

/** Mounts a gateway in a node:http2 server without TLS, which leaves `Expect: 100-continue` to the gateway. */
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

// Encrypts a test's plaintext for a TLS server, with HTTP/2 by ALPN. Forwards closes and resets on each side.
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
