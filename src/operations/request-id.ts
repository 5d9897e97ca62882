import { randomBytes } from "node:crypto";
import { type ContextKey, type ContextValues, createContextKey } from "@connectrpc/connect";

const requestIdKey: ContextKey<string | undefined> = createContextKey<string | undefined>(undefined, {
  description: "request id",
});

// 64 random bits name the process, a counter names the call: unique across replicas and restarts,
// and far cheaper than random bytes for every call.
const processId = randomBytes(8).toString("hex");
let lastCall = 0;

/**
 * Returns the id that ties one request to its log lines and to its deletion record.
 *
 * The id is made when it is first asked for and stays the same for the request's context values, so
 * a request that nobody asks about costs nothing. It is `<16 hex digits>-<counter in base 36>`.
 */
export function requestIdOf(contextValues: ContextValues): string {
  const known = contextValues.get(requestIdKey);
  if (known !== undefined) return known;
  lastCall += 1;
  const requestId = `${processId}-${lastCall.toString(36)}`;
  contextValues.set(requestIdKey, requestId);
  return requestId;
}
