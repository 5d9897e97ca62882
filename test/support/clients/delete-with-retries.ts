import { type DeleteOutcome, type PlantClient, PlantClientError } from "../../../src/client/index.ts";

/** Deletes a plant, and retries the call with its idempotency key until it gets a response. */
export async function deleteWithRetries(plants: PlantClient, id: bigint): Promise<DeleteOutcome> {
  const idempotencyKey = `key-${String(id)}`;
  for (;;) {
    try {
      return await plants.delete(id, { idempotencyKey });
    } catch (error) {
      const mayRepeat =
        error instanceof PlantClientError && (error.code === "UNAVAILABLE" || error.code === "RESOURCE_EXHAUSTED");
      if (!mayRepeat) throw error;
    }
  }
}
