import type { PlantStore } from "../../service/index.ts";
import type { Backend } from "../contract/backend.ts";
import { type Deletion, type Ending, endings } from "../contract/deletion.ts";
import { queuedStore } from "./queued-store.ts";
import type { StoreProblem } from "../contract/store-health.ts";

/** Opens an in-memory store for benchmarks and tests. Only deletions with an idempotency key are recorded. */
export function openMemoryStore(plants: Set<bigint> = new Set()): PlantStore {
  return queuedStore(memoryBackend(plants), { waitingMax: Number.MAX_SAFE_INTEGER });
}

function memoryBackend(plants: Set<bigint>): Backend {
  const records = new Map<string, { readonly plantId: bigint; readonly subject: string }>();
  let problem: StoreProblem | undefined;
  const endingOf = ({ id, call: { subject, idempotencyKey } }: Deletion): Ending => {
    const record = idempotencyKey === undefined ? undefined : records.get(idempotencyKey);
    if (record !== undefined && (record.plantId !== id || record.subject !== subject)) return endings.keyReused();
    const isDeleted = record !== undefined || plants.delete(id);
    if (isDeleted && idempotencyKey !== undefined) records.set(idempotencyKey, { plantId: id, subject });
    return isDeleted ? endings.deleted : endings.absent;
  };
  return {
    name: "memory",
    get problem() {
      return problem;
    },
    commit: async (batch) => {
      for (const one of batch) one.decide(endingOf(one));
      return undefined;
    },
    close: async () => void (problem = { text: "the store is closed", isTemporary: false }),
  };
}
