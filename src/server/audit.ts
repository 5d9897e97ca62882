import { type ContextKey, createContextKey, type Interceptor } from "@connectrpc/connect";
import { credentialRefusalOf, principalKey } from "@protoport/auth";
import { PlantService } from "../gen/es/plantstore/v1/plant_service_pb.ts";
import type { AuditedCall, CallAudit } from "@protoport/telemetry/logs";
import { policyOf, storeProblemOf } from "../service/index.ts";

const plantIdKey: ContextKey<bigint | undefined> = createContextKey<bigint | undefined>(undefined);

/**
 * Stores the requested plant's id for {@link auditOf}. `auditOf` cannot read the id from the path, because only REST
 * has the id in the path. In every request to the service, the field `id` is the plant's id.
 */
export const rememberPlantId: Interceptor = (next) => (request) => {
  if (!request.stream && request.service === PlantService && "id" in request.message) {
    const { id } = request.message;
    if (typeof id === "bigint") request.contextValues.set(plantIdKey, id);
  }
  return next(request);
};

/**
 * Returns the audit trail for a call, and the fields in the call's log line. The fields are the caller, the reason for
 * a refused credential, the store's problem, and the plant's id. Only a call with a refused credential or a deletion
 * with a plant's id has an audit trail.
 */
export function auditOf({ procedure, contextValues, error }: AuditedCall): CallAudit {
  const plantId = contextValues.get(plantIdKey);
  const principal = contextValues.get(principalKey);
  const refusal = credentialRefusalOf(error);
  const problem = storeProblemOf(error);
  const fields = {
    ...(principal !== undefined && { subject: principal.subject }),
    ...(principal?.issuer !== undefined && { issuer: principal.issuer }),
    ...(refusal !== undefined && { refusal: refusal.kind, reason: refusal.reason }),
    ...(problem !== undefined && { problem }),
  };
  if (plantId === undefined) return { trail: refusal && "refusals", fields };
  const effect = procedure === undefined ? undefined : policyOf(procedure)?.effect;
  // The id is a string, because a large JSON number loses digits.
  return { trail: effect === "deletion" ? "deletions" : undefined, fields: { ...fields, plantId: String(plantId) } };
}
