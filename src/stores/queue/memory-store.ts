import type { PlantStore } from "../../service/index.ts";
import type { Outcome, Requested } from "../contract/backend.ts";
import type { StoreProblem } from "../contract/store-health.ts";
import { queuedStore } from "./delete-queue.ts";

/** Opens an in-memory store for benchmarks and tests. Only deletions with an idempotency key are recorded. */
export function openMemoryStore(plants: Set<bigint> = new Set()): PlantStore {
  const records = new Map<string, { readonly plantId: bigint; readonly subject: string }>();
  let problem: StoreProblem | undefined;
  const outcomeOf = ({ id, call: { subject, idempotencyKey } }: Requested): Outcome => {
    const record = idempotencyKey === undefined ? undefined : records.get(idempotencyKey);
    if (record !== undefined && (record.plantId !== id || record.subject !== subject)) return "key-reused";
    const isDeleted = record !== undefined || plants.delete(id);
    if (isDeleted && idempotencyKey !== undefined) records.set(idempotencyKey, { plantId: id, subject });
    return isDeleted ? "deleted" : "absent";
  };
  return queuedStore(
    {
      name: "memory",
      get problem() {
        return problem;
      },
      commit: (batch) => Promise.resolve({ outcomes: batch.map(outcomeOf) }),
      close: async () => void (problem = { text: "the store is closed", isTemporary: false }),
    },
    { maxWaiting: Number.MAX_SAFE_INTEGER },
  );
}
