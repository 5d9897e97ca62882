/**
 * The entry `@protoport/rest-client`: a transport with which Connect's clients call any REST API over fetch.
 * `google.api.http` annotations on the RPCs determine the requests. The transport is the inverse of the gateway's
 * `rest/`.
 *
 * A rule (rest-rule) and a message determine the path (request-path), the query (request-query) and the body
 * (request-body, request-stream) of a request. A message that a request cannot represent completely is refused before a
 * request is sent. In responses, response-reader and response-stream read messages, and response-error reads errors.
 * This module does not require node, and generates no code at run time.
 */
export type { ReadErrorBody } from "./response-error.ts";
export { createRestTransport, type RestTransportOptions } from "./create-rest-transport.ts";
