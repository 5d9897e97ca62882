import { type ContextKey, createContextKey, type ContextValues, type Interceptor } from "@connectrpc/connect";
import { isMessage } from "@bufbuild/protobuf";
import { auditFieldsOf } from "../auth/index.ts";
import { DeletePlantRequestSchema } from "../gen/es/plantstore/v1/plant_service_pb.ts";
import type { CallAudit } from "../operations/call-log.ts";

const plantIdKey: ContextKey<bigint | undefined> = createContextKey<bigint | undefined>(undefined, {
  description: "plant id",
});

/** Remembers which plant a call is about, for {@link auditOf}: the path tells it on REST only. */
export const rememberPlantId: Interceptor = (next) => (request) => {
  if (!request.stream && isMessage(request.message, DeletePlantRequestSchema)) {
    request.contextValues.set(plantIdKey, request.message.id);
  }
  return next(request);
};

/**
 * Returns what an audit line says of a call: who asked, why the credential was refused if it was, and which
 * plant it was about. Refusals and calls that named a plant are the audit trail.
 */
export function auditOf(contextValues: ContextValues, error: unknown): CallAudit {
  const plantId = contextValues.get(plantIdKey);
  const fields = auditFieldsOf(contextValues, error);
  if (plantId === undefined) return { isAudited: fields.refusal !== undefined, fields };
  // As text: a JSON number that large is not read back exactly.
  return { isAudited: true, fields: { ...fields, plantId: String(plantId) } };
}
