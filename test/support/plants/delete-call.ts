import type { DeleteCall } from "../../../src/service/plant-store.ts";

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
