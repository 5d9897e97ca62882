import type { HttpEngine } from "../listen/index.ts";
import { createNodeHttp1Server } from "./http1-server.ts";
import { createNodeHttp2Server } from "./http2-server.ts";

/**
 * An HTTP engine on node:http and node:http2. Each node module is loaded with the first connection for its HTTP
 * version.
 */
export const nodeEngine: HttpEngine = {
  createHttp1Server: createNodeHttp1Server,
  createHttp2Server: createNodeHttp2Server,
};
