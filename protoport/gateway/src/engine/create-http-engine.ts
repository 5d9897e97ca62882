import type { HttpEngine } from "../http/node-entry.ts";
import { createHttp1Server } from "./http1-server.ts";
import { createHttp2Server } from "./http2-server.ts";

/** Creates the engine for HTTP/1.0 and HTTP/1.1 (RFC 9112) and HTTP/2 (RFC 9113, RFC 7541). */
export function createHttpEngine(): HttpEngine {
  return { createHttp1Server, createHttp2Server };
}
