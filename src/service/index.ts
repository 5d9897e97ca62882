/**
 * What `DeletePlant` does, who may call it, and what an error looks like.
 *
 * Start with `serve-plants.ts`: it combines the service, the two interceptors, the scopes and the error record into one
 * Connect server. The service deletes through a {@link PlantStore}, which is implemented elsewhere. This module does not
 * depend on settings, sockets or the process.
 */
export type { PlantErrorCode } from "./error-code.ts";
export {
  idempotencyKeyReused,
  outcomeUnknown,
  plantProtected,
  queueFull,
  storeUnavailable,
  subjectNotRecordable,
} from "./errors.ts";
export { idempotencyKeyField, idempotencyKeyPattern } from "./idempotency-key.ts";
export type { DeleteCall, PlantStore, StoreConnections, WaitingDeletions } from "./plant-store.ts";
export { plantScopeProblem, plantScopes, policyOf } from "./rpc-policy.ts";
export { type PlantParts, type PlantServing, restOptions, servePlants } from "./serve-plants.ts";
