import { type ContextKey, createContextKey, type Interceptor } from "@connectrpc/connect";
import { credentialRefusalOf, principalKey } from "@plantstore/auth";
import { PlantService } from "../gen/es/plantstore/v1/plant_service_pb.ts";
import type { AuditedCall, CallAudit } from "@plantstore/telemetry/logs";
import { policyOf } from "../service/index.ts";

const plantIdKey: ContextKey<bigint | undefined> = createContextKey<bigint | undefined>(undefined);

/**
 * Stores the id of the requested plant for {@link auditOf}, because only REST has the id in the path. In every request of
 * the service, the field `id` is the id of the plant.
 */
export const rememberPlantId: Interceptor = (next) => (request) => {
  if (!request.stream && request.service === PlantService && "id" in request.message) {
    const { id } = request.message;
    if (typeof id === "bigint") request.contextValues.set(plantIdKey, id);
  }
  return next(request);
};

/**
 * Returns the trail of a call and the fields of its audit line: the caller, the reason if the credential was refused, and
 * the id of the plant. The audit trail consists of refused credentials, and of calls that name a plant if the policy of
 * the RPC has a trail.
 */
export function auditOf({ procedure, contextValues, error }: AuditedCall): CallAudit {
  const plantId = contextValues.get(plantIdKey);
  const principal = contextValues.get(principalKey);
  const refusal = credentialRefusalOf(error);
  const fields = {
    ...(principal !== undefined && { subject: principal.subject }),
    ...(principal?.issuer !== undefined && { issuer: principal.issuer }),
    ...(refusal !== undefined && { refusal: refusal.kind, reason: refusal.reason }),
  };
  if (plantId === undefined) return { trail: refusal && "refusals", fields };
  const trail = procedure === undefined ? undefined : policyOf(procedure)?.trail;
  // As a string, because a large JSON number loses digits.
  return { trail, fields: { ...fields, plantId: String(plantId) } };
}
