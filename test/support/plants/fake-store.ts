import type { PlantStore } from "../../../src/service/index.ts";

/** Makes a store of what a test or a bench cares for: one that is well, in which there is no plant, but for `changes`. */
export function fakeStore(changes: Partial<PlantStore>): PlantStore {
  return { problem: undefined, delete: () => Promise.resolve(false), close: () => Promise.resolve(), ...changes };
}
