import { type ContextKey, createContextKey, type ContextValues, type Interceptor } from "@connectrpc/connect";
import { isMessage } from "@bufbuild/protobuf";
import { auditFieldsOf } from "../auth/index.ts";
import { DeletePlantRequestSchema } from "../gen/es/plantstore/v1/plant_service_pb.ts";

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
 * Returns what makes the log line of a call its audit line: who asked, why the credential was refused
 * if it was, and which plant it was about.
 */
export function auditOf(contextValues: ContextValues, error: unknown): object {
  const plantId = contextValues.get(plantIdKey);
  const fields = auditFieldsOf(contextValues, error);
  // As text: a JSON number that large is not read back exactly.
  return plantId === undefined ? fields : { ...fields, plantId: String(plantId) };
}
