/**
 * A transport for Connect's clients that calls any REST API by the `google.api.http` annotations of its RPCs, over
 * fetch: the entry `@plantstore/rest-client`. It is the inverse of `rest/`.
 *
 * Requests: from a rule (rest-rule) and a message, it creates a path (request-path), a query (request-query) and a body
 * (request-body, request-stream); a message that cannot be represented completely is refused before anything is sent.
 * Responses: response-reader and response-stream read messages, response-error reads errors. Nothing here needs node,
 * or generates code at run time.
 */
export type { ReadErrorRecord } from "./response-error.ts";
export { createRestTransport, type RestTransportOptions } from "./create-rest-transport.ts";
