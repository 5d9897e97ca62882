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
