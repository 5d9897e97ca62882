import { setTimeout as sleep } from "node:timers/promises";
import type { DeleteCall, PlantStore } from "../../../src/service/plant-store.ts";
import { deleteCall } from "./delete-call.ts";

/** Deletes a plant. Retries if the queue is full, as thousands of deletions make it on a busy machine. */
export async function deleteRetrying(store: PlantStore, id: bigint, call: DeleteCall = deleteCall()): Promise<boolean> {
  for (;;) {
    try {
      return await store.delete(id, call);
    } catch (fault) {
      if (Object(fault).errorCode !== "ERR_QUEUE_FULL") throw fault;
      await sleep(10);
    }
  }
}
