/** Nest controllers in the grpc-js form. Independent of Nest's packages, so that any version works. */
export { type GrpcServer, ignoredGrpcOptions } from "./grpc-server.ts";
export { holdRequests } from "./held-requests.ts";
export { withStatuses } from "./statuses.ts";
