import { randomBytes } from "node:crypto";
import { type ContextKey, type ContextValues, createContextKey, type Interceptor } from "@connectrpc/connect";

/** The key of the request id in the context values of a call, once {@link requestIdOf} has created it. */
export const requestIdKey: ContextKey<string | undefined> = createContextKey<string | undefined>(undefined, {
  description: "request id",
});

// 64 random bits identify the process, a counter the call: unique across replicas and restarts, and far cheaper than
// random bytes for every call.
const processId = randomBytes(8).toString("hex");
let lastCall = 0;

/**
 * Returns the id that ties a request to its log lines and its deletion record.
 *
 * It is created on first use and then stays with the context values of the request. It is `<16 hex digits>-<counter in
 * base 36>`.
 */
export function requestIdOf(contextValues: ContextValues): string {
  const known = contextValues.get(requestIdKey);
  if (known !== undefined) return known;
  lastCall += 1;
  const requestId = `${processId}-${lastCall.toString(36)}`;
  contextValues.set(requestIdKey, requestId);
  return requestId;
}

/**
 * Creates the request id of every call for all later interceptors and the handler. It must be the first interceptor.
 */
export const requestIdInterceptor: Interceptor = (next) => (request) => {
  requestIdOf(request.contextValues);
  return next(request);
};
