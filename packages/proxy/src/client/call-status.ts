import { Code, ConnectError } from "@connectrpc/connect";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import { ErrorCode, type HeaderFields, readHeaderField } from "@plantstore/gateway/exchange";
import { connectionLost } from "@plantstore/http-engine/client";
import { LazyHeaders } from "@plantstore/gateway/internal/protocols";

/**
 * Reads how a call has ended from its trailer, or from a header that is all of the answer ("Trailers-Only").
 *
 * @param header - what else becomes metadata of the error
 * @returns `undefined` for success
 */
export function readStatus(trailer: HeaderFields, header: HeaderFields): ConnectError | undefined {
  const text = readHeaderField(trailer, "grpc-status");
  if (text === "0") return undefined;
  if (text === null) return new ConnectError("the server has sent no grpc-status", Code.Internal);
  const status = statusSyntax.test(text) ? Number(text) : undefined;
  if (status === undefined) return new ConnectError("the server has sent a grpc-status that is none", Code.Internal);
  const code = status in Code ? status : Code.Unknown;
  const error = withDetails(trailer, code) ?? withoutDetails(trailer, code);
  new LazyHeaders(header).forEach((value, name) => error.metadata.append(name, value));
  return error;
}

// gRPC over HTTP/2, "Status": digits.
const statusSyntax = /^[0-9]+$/;

/** Returns the error with its details; `undefined` if they cannot be read, or say something else than the status. */
function withDetails(trailer: HeaderFields, code: Code): ConnectError | undefined {
  try {
    const error = findTrailerError(new LazyHeaders(trailer));
    return error?.code === code ? error : undefined;
  } catch {
    return undefined;
  }
}

function withoutDetails(trailer: HeaderFields, code: Code): ConnectError {
  const message = percentDecoded(readHeaderField(trailer, "grpc-message") ?? "");
  // As Connect marks errors of another server, whose metadata is not passed on.
  return Object.assign(new ConnectError(message, code, new LazyHeaders(trailer)), { isWireError: true });
}

/** gRPC over HTTP/2, "Status-Message": what is not encoded well is shown as it is. */
function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Returns the code for an answer without a grpc-status, by gRPC's "HTTP to gRPC Status Code Mapping". */
export function codeOfHttpStatus(httpStatus: number): Code {
  return httpStatusCodes.get(httpStatus) ?? Code.Unknown;
}

const httpStatusCodes: ReadonlyMap<number, Code> = new Map([
  [400, Code.Internal],
  [401, Code.Unauthenticated],
  [403, Code.PermissionDenied],
  [404, Code.Unimplemented],
  [429, Code.Unavailable],
  [502, Code.Unavailable],
  [503, Code.Unavailable],
  [504, Code.Unavailable],
]);

/** Returns the error of a call whose stream was reset, by the mapping in gRPC over HTTP/2, "Errors". */
export function resetError(code: number): ConnectError {
  if (code === connectionLost) return new ConnectError("the connection was lost", Code.Unavailable);
  const known = resetErrors.get(code);
  const [text, status] = known ?? ["the server has reset the call", Code.Internal];
  return new ConnectError(text, status);
}

const resetErrors: ReadonlyMap<number, readonly [text: string, code: Code]> = new Map([
  [ErrorCode.refusedStream, ["the server has refused the call", Code.Unavailable]],
  [ErrorCode.cancel, ["the server has canceled the call", Code.Canceled]],
  [ErrorCode.enhanceYourCalm, ["the call takes too much", Code.ResourceExhausted]],
  [ErrorCode.inadequateSecurity, ["the connection is not secure enough", Code.PermissionDenied]],
]);

/**
 * Returns an error that is found in an answer: what would be a client's mistake in a request is the server's here, and
 * has no identifier of those mistakes.
 */
export function answerError(error: unknown): ConnectError {
  const { code, rawMessage, cause } = ConnectError.from(error, Code.Internal);
  if (code !== Code.InvalidArgument) return new ConnectError(rawMessage, code, undefined, undefined, cause);
  return new ConnectError(`the answer is not as it should be: ${rawMessage}`, Code.Internal);
}
