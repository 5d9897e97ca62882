/** Converts Nest controllers to grpc-js handlers. Does not import Nest's packages, so that any version works. */
export { type GrpcServer, ignoredGrpcOptions } from "./grpc-server.ts";
export { holdRequests } from "./held-requests.ts";
export { mountStrategy, requireStarted } from "./mounted-application.ts";
export { withStatuses } from "./statuses.ts";
