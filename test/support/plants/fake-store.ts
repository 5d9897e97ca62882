import type { PlantStore } from "../../../src/service/index.ts";
import type { Backend } from "../../../src/stores/contract/backend.ts";
import { DeleteQueue, type QueueOptions } from "../../../src/stores/queue/delete-queue.ts";

export function fakeStore(changes: Partial<PlantStore>): PlantStore {
  return { problem: undefined, delete: () => Promise.resolve(false), close: () => Promise.resolve(), ...changes };
}

/** Returns a healthy backend that commits as the argument does, except for `changes`. */
export function fakeBackend(commit: Backend["commit"], changes: Partial<Backend> = {}): Backend {
  return { name: "fake", problem: undefined, commit, close: () => Promise.resolve(), ...changes };
}

export interface QueueOnOptions extends QueueOptions {
  /** Maximum number of concurrent batches. Default 1. */
  readonly maxInFlight?: number;
}

export type Commit = Backend["commit"];

/** Opens a queue whose backend has one lane. */
export function openQueueOn(commit: Commit, { maxInFlight = 1, ...options }: QueueOnOptions = {}): DeleteQueue {
  const lanes = { of: () => 0, maxInFlight };
  return new DeleteQueue(fakeBackend(commit, { lanes }), options);
}
