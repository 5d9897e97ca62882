/**
 * A transport for Connect's clients that calls any REST API by its RPCs' `google.api.http` annotations, over fetch: the
 * entry `@plantstore/rest-client`. The transport is the inverse of the gateway's `rest/`.
 *
 * Requests: a rule (rest-rule) and a message determine a path (request-path), a query (request-query) and a body
 * (request-body, request-stream). A message that cannot be represented completely is refused before anything is sent.
 * Responses: response-reader and response-stream read messages, response-error reads errors. This module does not
 * require node, and generates no code at run time.
 */
export type { ReadErrorBody } from "./response-error.ts";
export { createRestTransport, type RestTransportOptions } from "./create-rest-transport.ts";
