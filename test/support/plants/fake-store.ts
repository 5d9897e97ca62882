import type { PlantStore } from "../../../src/service/index.ts";

/** Returns a healthy store without plants, except for `changes`. */
export function fakeStore(changes: Partial<PlantStore>): PlantStore {
  return { problem: undefined, delete: () => Promise.resolve(false), close: () => Promise.resolve(), ...changes };
}
