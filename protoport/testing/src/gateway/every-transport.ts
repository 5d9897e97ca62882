import { createServer } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import type { Server } from "node:net";
import { createGateway, type GatewayOptions } from "../../../gateway/src/index.ts";
import type { Address, HttpResponse, HttpRequest, HttpVersion } from "../http/exchange.ts";
import { exchangeFetch } from "../http/fetch.ts";
import { listenOnLoopback } from "../http/listen-on-loopback.ts";
import { KeptConnections } from "./kept-connections.ts";

/** The HTTP servers on which a gateway can run, by name. */
// oxfmt-ignore
export const transportNames = [
  "the engine's HTTP/1.1", "the engine's HTTP/2", "a handler in node:http", "a handler in node:http2", "Fetch",
] as const;

export type TransportName = (typeof transportNames)[number];

/** A gateway on every HTTP server. Dispose of the gateway with `await using`. */
export interface EveryTransport extends AsyncDisposable {
  ask(transport: TransportName, request: HttpRequest): Promise<HttpResponse>;
  /** Returns an HTTP server's address, and the HTTP version for requests to the server. Fetch has no address. */
  addressOf(transport: Exclude<TransportName, "Fetch">): readonly [Address, HttpVersion];
}

/** Starts a gateway on every HTTP server. Only the handlers use `clientAddress`, `contextValues` and `fallback`. */
export async function openEveryTransport(options: GatewayOptions): Promise<EveryTransport> {
  const { clientAddress: _address, contextValues: _values, fallback: _fallback, ...listening } = options;
  const own = createGateway({ ...listening });
  const { handler } = createGateway(options);
  const [http1, http2] = [createServer(handler), createHttp2Server(handler)];
  // The keep-alive timeout is disabled, because a connection may be idle for long on a busy machine.
  http1.keepAliveTimeout = 0;
  const ownAddress = await own.listen({ host: "127.0.0.1" });
  const addresses: Readonly<Record<Exclude<TransportName, "Fetch">, readonly [Address, HttpVersion]>> = {
    "the engine's HTTP/1.1": [ownAddress, "1.1"],
    "the engine's HTTP/2": [ownAddress, "2"],
    "a handler in node:http": [await addressOf(http1), "1.1"],
    "a handler in node:http2": [await addressOf(http2), "2"],
  };
  const connections = new KeptConnections();
  return {
    async ask(transport, request) {
      if (transport === "Fetch") return await exchangeFetch(own.fetch, request);
      return await connections.exchange(...addresses[transport], request);
    },
    addressOf: (transport) => addresses[transport],
    async [Symbol.asyncDispose]() {
      connections[Symbol.dispose]();
      http1.close();
      http2.close();
      await own.close();
    },
  };
}

async function addressOf(server: Server): Promise<Address> {
  const { hostname, port } = new URL(await listenOnLoopback(server));
  return { address: hostname, port: Number(port) };
}
