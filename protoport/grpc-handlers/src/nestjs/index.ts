/** Converts Nest controllers to grpc-js handlers. Does not import Nest's packages, so that any version works. */
export {
  type GrpcServer,
  holdRequests,
  ignoredGrpcOptions,
  mountStrategy,
  requireStarted,
} from "./mounted-application.ts";
export { withStatuses } from "./statuses.ts";
