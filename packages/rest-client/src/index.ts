/**
 * Which request is this message? A transport for Connect's clients that calls any REST API by the `google.api.http`
 * annotations of its RPCs, over fetch: the entry `@plantstore/rest-client`. It is the inverse of `rest/`.
 *
 * Out: a rule (rest-rule) and a message make a path (request-path), a query (request-query) and a body (request-body,
 * request-stream), each of them whole or refused before anything is sent. Back: answer-reader and answer-stream make
 * messages, answer-error makes errors. Nothing here needs node, nor makes code at run time.
 */
export type { ReadErrorRecord } from "./answer-error.ts";
export { createRestTransport, type RestTransportOptions } from "./create-rest-transport.ts";
