import type { DeleteCall } from "../../src/plants/plant-store.ts";

/** A call that nobody gives up. */
export function deleteCall(changes: Partial<DeleteCall> = {}): DeleteCall {
  return { subject: "tester", requestId: "request-1", signal: new AbortController().signal, ...changes };
}
