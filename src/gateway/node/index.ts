/**
 * Which requests and streams of node:http and node:http2 are one exchange?
 *
 * In a server of the program in which the gateway is mounted, such as Express, they are node's own objects. This module
 * knows nothing of RPC.
 */
export { continueWhenRead, NodeHttp1Exchange } from "./http1-exchange.ts";
export { NodeHttp2Exchange } from "./http2-exchange.ts";
export { willEnd } from "./linger-at-end.ts";
export { readParsedBody } from "./parsed-body.ts";
export { readNodeTarget } from "./read-target.ts";
