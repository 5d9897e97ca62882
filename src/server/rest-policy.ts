import type { ConnectError } from "@connectrpc/connect";

/** What the gateway says of a failed REST request beside the error. */
interface Failure {
  readonly httpStatus: number;
  readonly procedure: string | undefined;
}

// Judged before the operation is known, or because there is none.
const statusesOutsideOperations: ReadonlySet<number> = new Set([404, 405, 414, 431]);

/**
 * Returns the HTTP status of a failed REST request: the plant store's policy.
 *
 * The specification knows one status for everything that goes wrong with an operation, 400. What is no
 * operation keeps the status that HTTP has for it, so that proxies and tools understand it.
 */
export function restStatusOf(failure: Failure): number {
  const isOutside = failure.procedure === undefined && statusesOutsideOperations.has(failure.httpStatus);
  return isOutside ? failure.httpStatus : 400;
}

/** Returns the error record of the specification; both members are always there, also when empty. */
export function errorRecordOf(error: ConnectError): { error: number; message: string } {
  return { error: error.code, message: error.rawMessage };
}
