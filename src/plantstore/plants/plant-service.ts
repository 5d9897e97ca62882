import type { ContextKey, ServiceImpl } from "@connectrpc/connect";
import type { PlantService } from "../gen/es/plantstore/v1/plant_service_pb.ts";
import { idMissing, plantNotFound } from "./errors.ts";
import { readIdempotencyKey, scopeIdempotencyKey } from "./idempotency-key.ts";
import type { PlantStore } from "./plant-store.ts";

/**
 * Options of {@link createPlantService}. The keys are passed in, because this room knows neither credentials nor logs.
 */
export interface PlantServiceOptions {
  readonly store: PlantStore;
  /**
   * The key of the caller among a call's context values. The deletion record names its `subject`; an idempotency key
   * belongs to its `issuer`.
   */
  readonly principalKey: ContextKey<{ readonly subject: string; readonly issuer?: string | undefined } | undefined>;
  /** The key of the id that ties the call to its log lines. */
  readonly requestIdKey: ContextKey<string | undefined>;
  /** The key of the `Idempotency-Key` field as it was sent. */
  readonly idempotencyFieldKey: ContextKey<string | undefined>;
}

/**
 * Creates the implementation of `plantstore.v1.PlantService`.
 *
 * `deletePlant` answers once the deletion is durable. It throws `InvalidArgument` when the request has no id or a
 * malformed idempotency key, `NotFound` when there is no such plant, and whatever the store throws.
 */
export function createPlantService(options: PlantServiceOptions): ServiceImpl<typeof PlantService> {
  const { store, principalKey, requestIdKey, idempotencyFieldKey } = options;
  return {
    // An async function would hold half a kilobyte more for each call that waits for its commit.
    deletePlant: ({ id }, context) => {
      if (id === undefined) throw idMissing();
      const { values } = context;
      const principal = values.get(principalKey);
      const subject = principal?.subject ?? "";
      const requestId = values.get(requestIdKey) ?? "";
      const field = values.get(idempotencyFieldKey);
      const idempotencyKey =
        field === undefined ? undefined : scopeIdempotencyKey(readIdempotencyKey(field), principal?.issuer);
      return store.delete(id, { subject, requestId, idempotencyKey, context }).then((deleted) => {
        if (!deleted) throw plantNotFound(id);
        return {};
      });
    },
  };
}
