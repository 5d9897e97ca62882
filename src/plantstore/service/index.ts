/**
 * What does `DeletePlant` do, who may call it, and what does an error look like?
 *
 * Start with `serve-plants.ts`: it combines the service, the two interceptors, the scopes and the error record into one
 * Connect server. The service deletes through a {@link PlantStore}; stores are implemented elsewhere, and settings,
 * sockets and the process are unknown here.
 */
export type { PlantErrorCode } from "./error-code.ts";
export {
  idempotencyKeyTaken,
  outcomeUnknown,
  plantKept,
  queueFull,
  storeAway,
  subjectNotRecordable,
} from "./errors.ts";
export { idempotencyKeyField, idempotencyKeyPattern } from "./idempotency-key.ts";
export type { DeleteCall, PlantStore, StoreConnections, WaitingDeletions } from "./plant-store.ts";
export { plantScopeProblem, plantScopes, policyOf } from "./rpc-policy.ts";
export { type PlantParts, type PlantServing, restOptions, servePlants } from "./serve-plants.ts";
