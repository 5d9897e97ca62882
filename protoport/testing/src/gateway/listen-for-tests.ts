import { createServer as createHttp2Server } from "node:http2";
import type { Gateway, ListenOptions } from "../../../gateway/src/index.ts";
import type { Address } from "../http/exchange.ts";
import { startOnLoopback } from "../http/listen-on-loopback.ts";

/** The servers for HTTP/2: the gateway itself, or a node:http2 server in which the gateway's handler is mounted. */
export const http2Servers = ["listening", "mounted"] as const;

export type Http2Server = (typeof http2Servers)[number];
/** Listen options, and the HTTP/2 server. The default is "listening". A mounted server supports only HTTP/2. */
export type TestListenOptions = ListenOptions & { readonly http2?: Http2Server };

export type Listening = { readonly address: Address; openRequests(): number; [Symbol.asyncDispose](): Promise<void> };

/** Starts listening, or mounts the gateway in a node:http2 server. */
export async function listenForTests(
  gateway: Gateway,
  { http2, ...options }: TestListenOptions = {},
): Promise<Listening> {
  if (http2 === "mounted") return await mount(gateway);
  const openRequests = () => gateway.load.requests.http1 + gateway.load.requests.http2;
  return { address: await gateway.listen(options), openRequests, [Symbol.asyncDispose]: () => gateway.close() };
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
