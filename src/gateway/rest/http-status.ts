import { Code, ConnectError } from "@connectrpc/connect";

// google/rpc/code.proto states the HTTP mapping of each code. A Map by number: Connect's Code has no member for OK.
const httpStatusByCode: Readonly<Record<Code, number>> = {
  [Code.Canceled]: 499,
  [Code.Unknown]: 500,
  [Code.InvalidArgument]: 400,
  [Code.DeadlineExceeded]: 504,
  [Code.NotFound]: 404,
  [Code.AlreadyExists]: 409,
  [Code.PermissionDenied]: 403,
  [Code.ResourceExhausted]: 429,
  [Code.FailedPrecondition]: 400,
  [Code.Aborted]: 409,
  [Code.OutOfRange]: 400,
  [Code.Unimplemented]: 501,
  [Code.Internal]: 500,
  [Code.Unavailable]: 503,
  [Code.DataLoss]: 500,
  [Code.Unauthenticated]: 401,
};

const statusOverrides = new WeakMap<ConnectError, number>();

/** The HTTP status of a code, as google/rpc/code.proto maps them. */
export function httpStatusOfCode(code: Code): number {
  return httpStatusByCode[code];
}

/**
 * The HTTP status of an error on REST: that of its code, unless HTTP has a more exact one for what went
 * wrong (415 for a content type), which no code expresses.
 */
export function httpStatusOf(error: ConnectError): number {
  return statusOverrides.get(error) ?? httpStatusOfCode(error.code);
}

/** An error whose HTTP status on REST is not that of its code. */
export function errorWithHttpStatus(message: string, code: Code, httpStatus: number): ConnectError {
  const error = new ConnectError(message, code);
  statusOverrides.set(error, httpStatus);
  return error;
}
