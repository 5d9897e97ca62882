/**
 * The implementation, the authorization and the errors for `DeletePlant`.
 *
 * Start with `plant-gateway-options.ts`, which combines the service, the two interceptors, the scopes and the error
 * record. The service deletes plants through the interface {@link PlantStore}, which other modules implement. The
 * service does not depend on settings, sockets or the process.
 */
export type { PlantErrorCode } from "./error-code.ts";
export {
  idempotencyKeyReused,
  outcomeUnknown,
  plantProtected,
  queueFull,
  storeProblemOf,
  storeUnavailable,
  subjectNotRecordable,
} from "./errors.ts";
export { idempotencyKeyField, idempotencyKeyPattern } from "./idempotency-key.ts";
export type { DeleteCall, PlantStore, StoreConnections, StoreFile, WaitingDeletions } from "./plant-store.ts";
export { plantScopeProblem, plantScopes, policyOf } from "./rpc-policy.ts";
export {
  type PlantGatewayParts,
  type PlantGatewayOptions,
  restOptions,
  createPlantGatewayOptions,
} from "./plant-gateway-options.ts";
