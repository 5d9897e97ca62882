/**
 * Exchanges on node:http and node:http2.
 *
 * They belong to the program's server in which the gateway is mounted, such as Express, or to `nodeEngine`, whose two
 * servers get the connections that the gateway's listener accepts. This module is independent of RPC.
 */
export { continueWhenRead, NodeHttp1Exchange } from "./http1-exchange.ts";
export { NodeHttp2Exchange } from "./http2-exchange.ts";
export { willEnd } from "./linger-at-end.ts";
export { nodeEngine } from "./node-engine.ts";
export { readParsedBody } from "./parsed-body.ts";
export { readNodeTarget } from "./read-target.ts";
export { requestsUpgrade, stopReadingAfter } from "./upgrade-request.ts";
