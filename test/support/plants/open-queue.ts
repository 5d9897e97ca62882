import type { Backend } from "../../../src/stores/contract/backend.ts";
import { DeleteQueue, type QueueOptions } from "../../../src/stores/queue/delete-queue.ts";
import { fakeBackend } from "./fake-store.ts";

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
