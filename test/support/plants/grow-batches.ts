import type { PlantStore } from "../../../src/service/plant-store.ts";
import { deleteCall } from "./delete-call.ts";

/** Deletes absent plants until a batch of the store may have more deletions than a test sends. */
export async function growBatches(store: PlantStore): Promise<void> {
  await Promise.all(Array.from({ length: 60 }, (_, i) => store.delete(BigInt(1_000_000 + i), deleteCall())));
}
