/**
 * Exchanges on node:http and node:http2.
 *
 * If the gateway is mounted in a program's server, such as Express, the exchanges belong to the program's server. For a
 * listening gateway, the exchanges belong to the servers of `nodeEngine`. This module is independent of RPC.
 */
export { continueWhenRead, NodeHttp1Exchange } from "./http1-exchange.ts";
export { NodeHttp2Exchange } from "./http2-exchange.ts";
export { willEnd } from "./linger-at-end.ts";
export { nodeEngine } from "./node-engine.ts";
export { readParsedBody } from "./parsed-body.ts";
export { readNodeTarget } from "./read-target.ts";
export { requestsUpgrade, stopReadingAfter } from "./upgrade-request.ts";
