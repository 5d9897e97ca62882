import { Code, ConnectError } from "@connectrpc/connect";
import { problem, errorCodeOf } from "@plantstore/gateway/internal/errors";

/** Seconds after which callers may try again. 1: gRPC's initial back-off. */
const retryAfterSeconds = "1";

/**
 * Returns the error to answer with for a call that has failed on the way, not by a status of the upstream. What says
 * where the upstream is stays in its cause, which no caller sees.
 */
export function errorOnTheWay(error: ConnectError): ConnectError {
  // One of the gateway's own, such as a mistake in what the caller streams.
  if (errorCodeOf(error) !== undefined) return error;
  const { code, rawMessage } = error;
  if (code === Code.Canceled) return error;
  if (code === Code.DeadlineExceeded) return problem("ERR_DEADLINE_EXCEEDED", rawMessage, { cause: error });
  // Whatever code gRPC prescribes for the failure, such as Internal for a reset stream.
  if (code !== Code.Unavailable) return problem("ERR_UPSTREAM_ANSWER", rawMessage, { code, cause: error });
  return unavailable("the service is not available", error);
}

/** Returns the error for a path that may be that of an upstream whose descriptors could not be read yet. */
export function unknownService(): ConnectError {
  return unavailable("the service is not available: it is not known yet what it offers");
}

function unavailable(message: string, cause?: ConnectError): ConnectError {
  const error = problem("ERR_UPSTREAM_UNAVAILABLE", message, { cause });
  error.metadata.set("retry-after", retryAfterSeconds);
  return error;
}

/** Returns the error for an answer that is complete, and not as the RPC has it. */
export function malformedAnswer({ rawMessage, code, cause }: ConnectError): ConnectError {
  const message = `the answer of the service is malformed: ${rawMessage}`;
  // A message over the limit is not malformed: the caller may ask for less.
  const more = code === Code.ResourceExhausted ? { code, cause } : { cause };
  return problem("ERR_UPSTREAM_ANSWER", message, more);
}

/** Returns the error for a message of an answer that is none of its type. */
export function unfitAnswer(typeName: string, cause: unknown): ConnectError {
  const message = "the answer of the service is not what its description says";
  const mismatch = new TypeError(`the answer is not a valid ${typeName}`, { cause });
  // RFC 9110 §15.6.3: the upstream and the gateway disagree, which no call can change.
  return problem("ERR_UPSTREAM_ANSWER", message, { httpStatus: 502, cause: mismatch });
}
