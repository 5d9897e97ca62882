import type { HttpEngine } from "../listen/index.ts";
import { createNodeHttp1Server } from "./http1-server.ts";
import { createNodeHttp2Server } from "./http2-server.ts";

/** HTTP on node:http and node:http2, which are loaded with the first connection that speaks their version. */
export const nodeEngine: HttpEngine = {
  createHttp1Server: createNodeHttp1Server,
  createHttp2Server: createNodeHttp2Server,
};
