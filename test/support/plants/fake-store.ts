import type { PlantStore } from "../../../src/service/index.ts";
import type { Backend } from "../../../src/stores/contract/backend.ts";

export function fakeStore(changes: Partial<PlantStore>): PlantStore {
  return { problem: undefined, delete: () => Promise.resolve(false), close: () => Promise.resolve(), ...changes };
}

/** Returns a healthy backend that commits as the argument does, except for `changes`. */
export function fakeBackend(commit: Backend["commit"], changes: Partial<Backend> = {}): Backend {
  return { name: "fake", problem: undefined, commit, close: () => Promise.resolve(), ...changes };
}
