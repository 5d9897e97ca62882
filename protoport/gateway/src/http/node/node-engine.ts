import type { HttpEngine } from "../listen/index.ts";
import { createNodeHttp1Server } from "./http1-server.ts";
import { createNodeHttp2Server } from "./http2-server.ts";

/** An HTTP engine on node:http and node:http2. Each module is loaded with the first connection that needs it. */
export const nodeEngine: HttpEngine = {
  createHttp1Server: createNodeHttp1Server,
  createHttp2Server: createNodeHttp2Server,
};
