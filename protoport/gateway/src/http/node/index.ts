/**
 * Exchanges on node:http and node:http2. The server belongs to the program if the gateway is mounted, for example in
 * Express, and otherwise to `nodeEngine`. This module is independent of RPC.
 */
export { continueWhenRead, NodeHttp1Exchange } from "./http1-exchange.ts";
export { NodeHttp2Exchange } from "./http2-exchange.ts";
export { willClose } from "./linger-on-close.ts";
export { nodeEngine } from "./node-engine.ts";
export { readParsedBody } from "./parsed-body.ts";
export { checkNodeRequestHead } from "./check-node-request-head.ts";
export { requestsUpgrade, stopReadingAfter } from "./upgrade-request.ts";
