import { Code, ConnectError } from "@connectrpc/connect";

/** The message that clients get for any fault; the cause is in the log under the request id. */
export const faultMessage = "internal error";

/**
 * Returns whether an error is a fault, which means that it was not written for clients.
 *
 * That is everything but a `ConnectError`, and also a `ConnectError` with a code that blames the server (`Internal`,
 * `Unknown`, `DataLoss`), because libraries put the messages of drivers and parsers there.
 */
export function isFault(reason: unknown): boolean {
  if (!(reason instanceof ConnectError)) return true;
  return isFaultCode(reason.code);
}

/** Returns whether a code blames the server itself: `Internal`, `Unknown` or `DataLoss`. */
export function isFaultCode(code: Code): boolean {
  return code === Code.Internal || code === Code.Unknown || code === Code.DataLoss;
}
