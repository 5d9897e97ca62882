import { type ContextKey, createContextKey, type Interceptor } from "@connectrpc/connect";
import { credentialRefusalOf, principalKey } from "@plantstore/auth";
import { PlantService } from "../gen/es/plantstore/v1/plant_service_pb.ts";
import type { AuditedCall, CallAudit } from "@plantstore/telemetry/logs";
import { policyOf } from "../service/index.ts";

const plantIdKey: ContextKey<bigint | undefined> = createContextKey<bigint | undefined>(undefined);

/**
 * Remembers which plant a call is about, for {@link auditOf}, because only REST has its id in the path. The field `id`
 * of every request of the service names the plant.
 */
export const rememberPlantId: Interceptor = (next) => (request) => {
  if (!request.stream && request.service === PlantService && "id" in request.message) {
    const { id } = request.message;
    if (typeof id === "bigint") request.contextValues.set(plantIdKey, id);
  }
  return next(request);
};

/**
 * Returns what the audit line of a call says: the caller, why its credential was refused if it was, and which plant the
 * call was about. The audit trail consists of refused credentials and of calls that named a plant, of RPCs whose policy
 * has a trail.
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
  // As text: a JSON number that large is not read back exactly.
  return { trail, fields: { ...fields, plantId: String(plantId) } };
}
