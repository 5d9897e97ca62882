/**
 * Exchanges on node:http and node:http2. They belong to the program's server, such as Express, if the gateway is
 * mounted there, and otherwise to the servers of `nodeEngine`. This module is independent of RPC.
 */
export { continueWhenRead, NodeHttp1Exchange } from "./http1-exchange.ts";
export { NodeHttp2Exchange } from "./http2-exchange.ts";
export { willClose } from "./linger-on-close.ts";
export { nodeEngine } from "./node-engine.ts";
export { readParsedBody } from "./parsed-body.ts";
export { checkNodeRequestHead } from "./check-node-request-head.ts";
export { requestsUpgrade, stopReadingAfter } from "./upgrade-request.ts";
