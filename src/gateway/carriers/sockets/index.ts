/**
 * Which bytes of a socket are one exchange?
 *
 * A listener accepts connections and tells HTTP/1.1 from HTTP/2; our own HTTP/1.1 or HTTP/2 turns each request into an
 * exchange: header in, body in, answer out. This room knows connections and what to do with a body that nobody reads;
 * it knows nothing of RPC. What only node's servers need, in programs that mount the gateway, is in `node/`.
 */
export type { BindOptions, BoundAddress } from "./bind.ts";
export type { GatewayLoad } from "./http-server.ts";
export { shareConnections, type SharedPort } from "./share-connections.ts";
export { Listener, type ListenOptions } from "./listener.ts";
export { willEnd } from "./node/linger-at-end.ts";
export { continueWhenRead, NodeHttp1Exchange } from "./node/node-http1-exchange.ts";
export { NodeHttp2Exchange } from "./node/node-http2-exchange.ts";
export { readParsedBody } from "./node/parsed-body.ts";
