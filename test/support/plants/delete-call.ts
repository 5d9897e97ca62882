import type { DeleteCall, PlantStore } from "../../../src/service/plant-store.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { ConnectError } from "@connectrpc/connect";

/** Returns a call that only the given signal cancels. */
export function deleteCall({
  signal = new AbortController().signal,
  subject = "tester",
  requestId = "request-1",
  idempotencyKey,
}: Partial<Omit<DeleteCall, "context"> & DeleteCall["context"]> = {}): DeleteCall {
  return { subject, requestId, idempotencyKey, context: { signal } };
}

/** Deletes the first `apart` plants in separate turns, as separate batches while a lane is free, then the rest. */
export async function deleteApart<Result>(
  ids: readonly bigint[],
  apart: number,
  remove: (id: bigint) => Promise<Result>,
): Promise<Promise<Result>[]> {
  const results: Promise<Result>[] = [];
  for (const [i, id] of ids.entries()) {
    const result = remove(id);
    // It may be refused before the caller waits for it.
    result.catch(() => undefined);
    results.push(result);
    if (i < apart) await new Promise(setImmediate);
  }
  return results;
}

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

/** Returns the error with which a promise rejects. Fails when the promise resolves. */
export const refusalOf = (promise: Promise<unknown>): Promise<ConnectError> =>
  promise.then(
    (value) => {
      throw new Error(`expected a refusal, got ${String(value)}`);
    },
    (reason: unknown) => ConnectError.from(reason),
  );
