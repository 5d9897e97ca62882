import type { ErrorRecordPolicy } from "@plantstore/gateway";

// Statuses of requests that match no operation (404, 405) or fail before matching (414, 431); proxies rely on them.
const statusesWithoutOperation: ReadonlySet<number> = new Set([404, 405, 414, 431]);

/**
 * Returns the error record of the plant store, `{"error": int32, "message": string}`, and its HTTP status. Both members
 * are always present, even when empty; `error` is the number of the gRPC status code.
 *
 * The specification has a single status for everything that goes wrong with an operation: 400. A request that matches
 * no operation keeps its usual status.
 */
export const errorRecord: ErrorRecordPolicy = (error, failure) => {
  const keepsStatus = failure.procedure === undefined && statusesWithoutOperation.has(failure.httpStatus);
  return { httpStatus: keepsStatus ? failure.httpStatus : 400, body: { error: error.code, message: error.rawMessage } };
};
