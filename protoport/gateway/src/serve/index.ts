/**
 * The request lifecycle, from finding the target and admission to the handler and the response.
 *
 * `serve.ts` has the steps in order. The module depends on RPCs and handlers, but not on sockets or the message formats
 * of protocols.
 */
export {
  compileRoutes,
  compileRoutesInSteps,
  createServer,
  type Platform,
  servingOptionNames,
  type ServingOptions,
  toErrorDefault,
} from "./create-server.ts";
export type { CorsOptions } from "./cors.ts";
export type { Endpoint, EndpointResponse, EndpointRequest } from "./endpoint.ts";
export { findTarget, type GatewayRoute, listRoutes, type Routes, type Target, unmatchedTarget } from "./routes.ts";
export { type CurrentServer, refuseProblem, type Server } from "./server.ts";
export { serve } from "./serve.ts";
export type { Validation } from "./validation.ts";
export { toFault } from "./to-connect-error.ts";
export { createFaultReporter, type FaultReporter, fieldFailure, guardCallback, type OnFault } from "./faults.ts";
export { registerForwarder } from "./forwarding-callee.ts";
export { wrapMessages } from "./stream-messages.ts";
export type {
  Admit,
  AdmitProcedure,
  AdmitRequest,
  Caller,
  CompletedRequest,
  FailedRequest,
  Forwarder,
  MessageCheck,
  Reply,
} from "../protocols/index.ts";
