import { Code, ConnectError } from "@connectrpc/connect";

/** The message that clients get for every fault. The cause is logged with the request id. */
export const faultMessage = "internal error";

/**
 * Returns whether an error is a fault, which is an error whose message is not intended for clients.
 *
 * Everything except a `ConnectError` is a fault. A `ConnectError` with the code `Internal`, `Unknown` or `DataLoss` is
 * a fault too, because libraries use these codes for messages from drivers and parsers.
 */
export function isFault(reason: unknown): boolean {
  if (!(reason instanceof ConnectError)) return true;
  return isFaultCode(reason.code);
}

/** Returns whether a code means a fault: `Internal`, `Unknown` or `DataLoss`. */
export function isFaultCode(code: Code): boolean {
  return code === Code.Internal || code === Code.Unknown || code === Code.DataLoss;
}
