import type { PlantStore } from "../../../src/plantstore/plants/index.ts";
import { fakeStore } from "./fake-store.ts";

/** A store that writes down what it is asked, and answers when it is told to. */
export interface RecordingStore extends PlantStore {
  /** The ids that were asked for, in their order. */
  readonly asked: readonly bigint[];
  /** Resolves when this id is asked for. */
  isAsked(id: bigint): Promise<void>;
  /** Resolves when the call for this id is given up. */
  isGivenUp(id: bigint): Promise<void>;
}

/** Opens a store in which every plant is there, and a deletion of one of `slow` takes until it is given up. */
export function openRecordingStore(slow: ReadonlySet<bigint>): RecordingStore {
  const asked: bigint[] = [];
  const events = new Map<string, PromiseWithResolvers<void>>();
  const event = (name: string, id: bigint): PromiseWithResolvers<void> => {
    const key = `${name} ${String(id)}`;
    const known = events.get(key) ?? Promise.withResolvers<void>();
    events.set(key, known);
    return known;
  };
  return {
    asked,
    isAsked: (id) => event("asked", id).promise,
    isGivenUp: (id) => event("given up", id).promise,
    ...fakeStore({}),
    delete: async (id, { context: { signal } }) => {
      asked.push(id);
      event("asked", id).resolve();
      if (!slow.has(id)) return true;
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      event("given up", id).resolve();
      throw signal.reason;
    },
  };
}
