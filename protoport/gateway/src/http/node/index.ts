/**
 * Exchanges on node:http and node:http2, whose servers belong to the program, for example in Express. This module is
 * independent of RPC.
 */
export { AwaitedBody } from "./awaited-body.ts";
export { continueWhenRead, NodeHttp1Exchange } from "./http1-exchange.ts";
export { NodeHttp2Exchange } from "./http2-exchange.ts";
export { willClose } from "./linger-on-close.ts";
export { readParsedBody } from "./parsed-body.ts";
export { checkNodeRequestHead } from "./check-node-request-head.ts";
export { requestsUpgrade, stopReadingAfter } from "./upgrade-request.ts";
