import { type ContextKey, createContextKey, type Interceptor } from "@connectrpc/connect";
import { credentialRefusalOf, principalKey } from "@plantstore/auth";
import { PlantService } from "../gen/es/plantstore/v1/plant_service_pb.ts";
import type { AuditedCall, CallAudit } from "@plantstore/telemetry/logs";
import { policyOf, storeProblemOf } from "../service/index.ts";

const plantIdKey: ContextKey<bigint | undefined> = createContextKey<bigint | undefined>(undefined);

/**
 * Stores the requested plant's id for {@link auditOf}. Only REST has the id in the path, so `auditOf` cannot read it
 * there. In every request to the service, the field `id` is the plant's id.
 */
export const rememberPlantId: Interceptor = (next) => (request) => {
  if (!request.stream && request.service === PlantService && "id" in request.message) {
    const { id } = request.message;
    if (typeof id === "bigint") request.contextValues.set(plantIdKey, id);
  }
  return next(request);
};

/**
 * Returns a call's audit trail, and the fields of its line: the caller, the reason if the credential was refused, the
 * store's problem, and the plant's id. Only calls with a refused credential and deletions that name a plant have a
 * trail.
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
