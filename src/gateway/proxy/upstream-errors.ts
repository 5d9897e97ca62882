import { Code, ConnectError } from "@connectrpc/connect";
import { codedError, errorCodeOf } from "../errors/index.ts";
import { errorWithHttpStatus } from "../rest/index.ts";

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
  if (code === Code.DeadlineExceeded) return codedError("ERR_DEADLINE_EXCEEDED", rawMessage, code, error);
  if (code !== Code.Unavailable) return codedError("ERR_UPSTREAM_ANSWER", rawMessage, code, error);
  const unavailable = codedError("ERR_UPSTREAM_UNAVAILABLE", "the service is not available", code, error);
  unavailable.metadata.set("retry-after", retryAfterSeconds);
  return unavailable;
}

/** Returns the error for an answer that is complete, and not as the RPC has it. */
export function malformedAnswer({ rawMessage, code, cause }: ConnectError): ConnectError {
  const found = code === Code.ResourceExhausted ? code : Code.Internal;
  return codedError("ERR_UPSTREAM_ANSWER", `the answer of the service is malformed: ${rawMessage}`, found, cause);
}

/** Returns the error for a message of an answer that is none of its type. */
export function unfitAnswer(typeName: string, cause: unknown): ConnectError {
  const message = "the answer of the service is not what its description says";
  const error = errorWithHttpStatus("ERR_UPSTREAM_ANSWER", message, Code.Internal, 502);
  return Object.assign(error, { cause: new TypeError(`the answer is not a valid ${typeName}`, { cause }) });
}
