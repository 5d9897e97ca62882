import type { ConnectError } from "@connectrpc/connect";

/** What the gateway knows of a failed REST request beside the error. */
interface Failure {
  /** The status that HTTP, or google.rpc.Code's mapping to it, has for the failure. */
  readonly httpStatus: number;
  /** The RPC that matched, or `undefined` when nothing did. */
  readonly procedure: string | undefined;
}

/** The answer to a failed REST request: the specification's error record under the status of the policy. */
interface ErrorRecord {
  readonly httpStatus: number;
  readonly body: { readonly error: number; readonly message: string };
}

// Judged before the operation is known, or because there is none; proxies and tools go by these.
const statusesWithoutOperation: ReadonlySet<number> = new Set([404, 405, 414, 431]);

/**
 * Returns the error record of the plant store; both members are always there, also when empty.
 *
 * The specification knows one status for everything that goes wrong with an operation: 400. A request
 * that is for no operation keeps the status that HTTP has for it.
 */
export function errorRecord(error: ConnectError, failure: Failure): ErrorRecord {
  const keepsStatus = failure.procedure === undefined && statusesWithoutOperation.has(failure.httpStatus);
  return {
    httpStatus: keepsStatus ? failure.httpStatus : 400,
    body: { error: error.code, message: error.rawMessage },
  };
}
