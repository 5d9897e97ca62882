/**
 * What does a request ask for, may it, and how does it end?
 *
 * `serve.ts` follows a request from top to bottom. Knows RPCs and their handlers; knows nothing of sockets, or of how a
 * protocol writes its messages.
 */
export {
  compileRoutes,
  createServer,
  type Platform,
  servingOptionNames,
  type ServingOptions,
} from "./create-server.ts";
export type { CorsOptions } from "./cors.ts";
export type { Endpoint, EndpointAnswer, EndpointRequest } from "./endpoint.ts";
export { requestOf } from "./create-rpcs.ts";
export { findTarget, type Routes, type Target, unmatched } from "./routes.ts";
export { refuseProblem } from "./refuse.ts";
export { serve } from "./serve.ts";
export type { Server } from "./server.ts";
export { CallView } from "./call-view.ts";
export { createFaultReporter, type FaultReporter, guardCallback, type OnFault } from "./faults.ts";
export { beginAnswer } from "./serve-stream.ts";
export { type Admit, type AdmitRequest, type AnsweredRequest, type FaultyRequest } from "./hooks.ts";
