/**
 * What is called, may the caller, and how does it end?
 *
 * match → admit → dispatch → unary or streaming call → answer. Knows procedures and their handlers; knows nothing of
 * sockets, or of how a protocol writes its messages.
 */
export { type CorsOptions, createCors } from "./cors.ts";
export {
  createMatchTable,
  type Endpoint,
  type EndpointAnswer,
  type EndpointRequest,
  type MatchTable,
  matchRequest,
} from "./match.ts";
export { createProcedures } from "./create-procedures.ts";
export { refuse } from "./refuse.ts";
export { type Admit, type AdmitRequest, type AnsweredRequest, createDispatch, type Dispatch } from "./dispatch.ts";
