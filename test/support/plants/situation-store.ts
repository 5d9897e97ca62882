import { plantProtected, queueFull, storeUnavailable } from "../../../src/service/errors.ts";
import { openMemoryStore } from "../../../src/stores/index.ts";
import type { PlantStore } from "../../../src/service/index.ts";
import { deleteCall } from "./delete-call.ts";

/** Ids for which the contract's store simulates rare situations. */
export const situations = {
  /** The store throws an unexpected error, whose text no client may see. */
  fault: -500n,
  /** The database is unavailable. */
  away: -503n,
  /** A database constraint keeps the plant. */
  kept: -409n,
  /** A caller with the key {@link takenKey} has deleted it. */
  keyTaken: -208n,
  /** The deletion queue is full. */
  full: -429n,
  /** The deletion runs until the call is cancelled. */
  slow: -504n,
} as const;

/** An idempotency key without an issuer that belongs to one plant's deletion, by a subject that no token has. */
export const takenKey = "taken";
/** An internal error's text, which must not reach a client. */
export const secretText = "ENOENT: /var/lib/secret/plants.db";

/** Opens a store over the given set, in which the ids in {@link situations} cause their situations. */
export function openSituationStore(plants: Set<bigint>): PlantStore {
  const memory = openMemoryStore(plants);
  plants.add(situations.keyTaken);
  void memory.delete(situations.keyTaken, deleteCall({ idempotencyKey: `:${takenKey}`, subject: "nobody" }));
  return {
    ...memory,
    delete: async (id, call) => {
      await situationOf(id, call.context.signal);
      if (id === situations.kept) throw plantProtected(id, new Error(secretText));
      if (id === situations.full) throw queueFull();
      return await memory.delete(id, call);
    },
  };
}

async function situationOf(id: bigint, signal: AbortSignal): Promise<void> {
  if (id === situations.fault) throw new Error(secretText);
  if (id === situations.away) throw storeUnavailable(new Error(secretText));
  if (id === situations.slow) await abortOf(signal);
}

async function abortOf(signal: AbortSignal): Promise<never> {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  throw signal.reason;
}
