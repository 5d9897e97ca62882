import { Code, ConnectError } from "@connectrpc/connect";
import { problem, errorCodeOf } from "@protoport/gateway/errors";

/** Seconds after which callers may retry. One second is gRPC's initial backoff. */
const retryAfterSeconds = "1";

/**
 * Returns the error for a call that failed without a status from the upstream. Only the error's cause has details such
 * as the upstream's address, because causes are not sent to callers.
 */
export function transportError(error: ConnectError): ConnectError {
  // The gateway itself created the error, for example for an invalid message in the caller's stream.
  if (errorCodeOf(error) !== undefined) return error;
  const { code, rawMessage } = error;
  if (code === Code.Canceled) return error;
  if (code === Code.DeadlineExceeded) return problem("ERR_DEADLINE_EXCEEDED", rawMessage, { cause: error });
  // Keeps the code that gRPC prescribes for the failure, such as Internal for a reset stream.
  if (code !== Code.Unavailable) return problem("ERR_UPSTREAM_RESPONSE", rawMessage, { code, cause: error });
  return unavailableError("the service is not available", error);
}

/** Returns the error for an unknown path that may belong to an upstream whose descriptors could not be read yet. */
export function unknownServiceError(): ConnectError {
  return unavailableError("the service is not available: its descriptors are not loaded yet");
}

function unavailableError(message: string, cause?: ConnectError): ConnectError {
  const error = problem("ERR_UPSTREAM_UNAVAILABLE", message, { cause });
  error.metadata.set("retry-after", retryAfterSeconds);
  return error;
}

/** Returns the error for a complete response that is not valid for its RPC. */
export function malformedResponseError({ rawMessage, code, cause }: ConnectError): ConnectError {
  const message = `the response of the service is malformed: ${rawMessage}`;
  // Keeps ResourceExhausted for a message above the limit, so that the caller can request less.
  const options = code === Code.ResourceExhausted ? { code, cause } : { cause };
  return problem("ERR_UPSTREAM_RESPONSE", message, options);
}

/** Returns the error for a response message that does not match its type. */
export function descriptorMismatchError(typeName: string, cause: unknown): ConnectError {
  const message = "the response of the service does not match its descriptors";
  const mismatch = new TypeError(`the response is not a valid ${typeName}`, { cause });
  // 502 (RFC 9110 §15.6.3). A retry does not help, because the upstream and the descriptors do not match.
  return problem("ERR_UPSTREAM_RESPONSE", message, { httpStatus: 502, cause: mismatch });
}
