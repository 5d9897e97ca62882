/**
 * Which bytes are one request and its answer?
 *
 * A listener accepts connections and tells HTTP/1.1 from HTTP/2; node:http, our own HTTP/2 or node:http2 turns each
 * request into an {@link Exchange}: header in, body in, answer out. This room knows connections, limits and what to do
 * with a body that nobody reads; it knows nothing of RPC.
 */
export { type AbortReceiver, type BodyReceiver, type Exchange, goneAway, type Peer } from "./exchange.ts";
export { type Limits, defaultLimits, defaultReadMaxBytes } from "./limits.ts";
export { Listener, type ListenOptions } from "./listener.ts";
export { type HttpProblem, readRequestTarget } from "./request-line.ts";
export { type ConnectionPolicy, connectionOn, http1LingerMs } from "./http1-connection.ts";
export { createFaultReporter, guardCallback, type OnFault } from "./faults.ts";
export { Http1Exchange } from "./http1-exchange.ts";
export { NodeHttp2Exchange } from "./node-http2-exchange.ts";
export { CommonFields, type HeaderFields, type HeaderReader, prepareFields, readField } from "./header-fields.ts";
export { startDeadline } from "./timeout.ts";
