import { createServer } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import type { Gateway } from "../../gateway/src/index.ts";
import type { HttpRequest } from "../../testing/src/http/exchange.ts";
import { exchangeFetch, canFetchSend } from "../../testing/src/http/fetch.ts";
import { startOnLoopback } from "../../testing/src/http/listen-on-loopback.ts";
import { Http1Recorder } from "./http1.ts";
import { Http2Recorder } from "./http2.ts";
import { renderBytes, renderFields } from "./render.ts";

/** One way to send requests to a gateway. */
export interface Transport {
  readonly name: string;
  /** Sends a request and returns its response as text, or `undefined` if the transport cannot express the request. */
  record(request: HttpRequest): Promise<string | undefined>;
}

/** Serves a gateway over its own HTTP/1.1 and HTTP/2, mounted in node:http and node:http2, and over Fetch. */
export async function openTransports(
  gateway: Gateway,
): Promise<AsyncDisposable & { readonly all: readonly Transport[] }> {
  await using opened = new AsyncDisposableStack();
  const own = await gateway.listen({ host: "127.0.0.1" });
  const http1 = opened.use(await startOnLoopback(createServer(gateway.handler)));
  const http2 = opened.use(await startOnLoopback(createHttp2Server(gateway.handler)));
  const recorders = {
    http1: opened.use(new Http1Recorder(own)),
    http2: opened.use(new Http2Recorder(own, true)),
    "node-http1": opened.use(new Http1Recorder(http1.address)),
    "node-http2": opened.use(new Http2Recorder(http2.address, false)),
  };
  const overSockets = Object.entries(recorders).map(([name, recorder]) => ({
    name,
    record: (request: HttpRequest) => recorder.record(withHost(request)),
  }));
  const closing = opened.move();
  return {
    all: [...overSockets, { name: "fetch", record: (request) => recordFetch(gateway, request) }],
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

/** Adds a fixed host, because ports differ from run to run, and a response may contain the request's host. */
function withHost(request: HttpRequest): HttpRequest {
  if (request.header.some(([name]) => name === "host")) return request;
  return { ...request, header: [["host", "gateway.example"], ...request.header] };
}

async function recordFetch(gateway: Gateway, request: HttpRequest): Promise<string | undefined> {
  if (!canFetchSend(request)) return undefined;
  const { httpStatus, header, body } = await exchangeFetch(gateway.fetch, request);
  return `${httpStatus}\n${renderFields(header)}\n${renderBytes(body)}\n`;
}
