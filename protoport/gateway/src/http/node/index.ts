/**
 * Exchanges on node:http and node:http2, whose servers belong to the program, for example in Express. This module is
 * independent of RPC.
 */
export { AwaitedBody, checkNodeRequestHead, peerOf } from "./exchange.ts";
export { continueWhenRead, NodeHttp1Exchange, requestsUpgrade, stopReadingAfter, willClose } from "./http1-exchange.ts";
export { NodeHttp2Exchange } from "./http2-exchange.ts";
export { readParsedBody } from "./parsed-body.ts";
