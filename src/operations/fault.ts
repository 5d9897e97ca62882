import { Code, ConnectError } from "@connectrpc/connect";

/** The text a client sees of any fault; what went wrong is in the log under the request id. */
export const faultMessage = "internal error";

/**
 * Says whether an error is a fault: something that nobody wrote for the client to read.
 *
 * Everything that is not a `ConnectError` is one. So are `ConnectError`s with the codes that blame
 * the server (`Internal`, `Unknown`, `DataLoss`), because libraries put driver and parser texts there.
 */
export function isFault(reason: unknown): boolean {
  if (!(reason instanceof ConnectError)) return true;
  return isFaultCode(reason.code);
}

/** Says whether a code blames the server itself: `Internal`, `Unknown` or `DataLoss`. */
export function isFaultCode(code: Code): boolean {
  return code === Code.Internal || code === Code.Unknown || code === Code.DataLoss;
}
