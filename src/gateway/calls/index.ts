/**
 * What is called, may the caller, and how does it end?
 *
 * match → admit → dispatch → unary or streaming call → answer. Knows procedures and their handlers; knows nothing of
 * sockets, or of how a protocol writes its messages.
 */
export { createServing, type Platform, type Serving, type ServingOptions } from "./create-serving.ts";
export type { CorsOptions } from "./cors.ts";
export type { Endpoint, EndpointAnswer, EndpointRequest } from "./endpoint.ts";
export { requestOf } from "./create-procedures.ts";
export { type Match, matchRequest } from "./match.ts";
export { endOf } from "./call-end.ts";
export { LaterAnswer } from "./later-answer.ts";
export { type FaultyRequest, guardCallback, type OnFault } from "./faults.ts";
export { beginAnswer } from "./stream-call.ts";
export { type Admit, type AdmitRequest, type AnsweredRequest, idempotencyFieldKey } from "./hooks.ts";
