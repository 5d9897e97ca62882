import type { DeleteCall } from "../../src/plants/plant-store.ts";

/** A call that nobody gives up. */
export function deleteCall(changes: Partial<DeleteCall> = {}): DeleteCall {
  const { signal = new AbortController().signal } = changes;
  return {
    subject: "tester",
    requestId: "request-1",
    signal,
    get abortReason() {
      return signal.reason;
    },
    ...changes,
  };
}
