import { Code, ConnectError } from "@connectrpc/connect";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import { ErrorCode, problem } from "@protoport/gateway/errors";
import { type HeaderFields, readHeaderField } from "@protoport/gateway/exchange";
import { connectionLost, serverUnresponsive } from "@protoport/gateway/http2-client";
import { LazyHeaders } from "@protoport/gateway/forward";

/**
 * Reads a call status from its trailer, or from the header of a "Trailers-Only" response.
 *
 * @param header - fields that are added to the error metadata
 * @returns the call error, or `undefined` for success
 */
export function readStatus(trailer: HeaderFields, header: HeaderFields): ConnectError | undefined {
  const text = readHeaderField(trailer, "grpc-status");
  if (text === "0") return undefined;
  if (text === null) return new ConnectError("the response has no grpc-status", Code.Internal);
  const status = grpcStatusSyntax.test(text) ? Number(text) : undefined;
  if (status === undefined) return new ConnectError("the grpc-status of the response is not a number", Code.Internal);
  const code = status in Code ? status : Code.Unknown;
  const error = errorWithDetails(trailer, code) ?? errorWithoutDetails(trailer, code);
  new LazyHeaders(header).forEach((value, name) => error.metadata.append(name, value));
  return error;
}

// gRPC over HTTP/2 defines "Status" as digits.
const grpcStatusSyntax = /^[0-9]+$/;

/** Returns the error with its details, or `undefined` if the details cannot be decoded or contain a different code. */
function errorWithDetails(trailer: HeaderFields, code: Code): ConnectError | undefined {
  try {
    const error = findTrailerError(new LazyHeaders(trailer));
    return error?.code === code ? error : undefined;
  } catch {
    return undefined;
  }
}

function errorWithoutDetails(trailer: HeaderFields, code: Code): ConnectError {
  const message = percentDecoded(readHeaderField(trailer, "grpc-message") ?? "");
  // With `isWireError`, Connect does not forward metadata from another server's error.
  return Object.assign(new ConnectError(message, code, new LazyHeaders(trailer)), { isWireError: true });
}

/** Decodes a "Status-Message" (gRPC over HTTP/2). Returns the text unchanged if it is not encoded correctly. */
function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Returns the code for a response without a grpc-status, by gRPC's "HTTP to gRPC Status Code Mapping". */
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

/** Returns the error for a reset stream (gRPC over HTTP/2, "Errors"). `lossReason` is why the connection was lost. */
export function resetError(code: number, lossReason?: string): ConnectError {
  if (code === connectionLost) {
    const reason = lossReason === undefined ? "" : `: ${lossReason}`;
    return new ConnectError(`the connection was lost${reason}`, Code.Unavailable);
  }
  if (code === serverUnresponsive) return new ConnectError("the server did not respond to a PING", Code.Unavailable);
  const [text, status] = errorsByResetCode.get(code) ?? ["the server reset the call", Code.Internal];
  return new ConnectError(text, status);
}

/** Returns the error for a call whose response has a header or trailer above the receiver's limit. */
export function responseHeaderTooLargeError(limitBytes: number, receiver: "client" | "proxy"): ConnectError {
  const text = `the header fields of the response are larger than ${limitBytes} bytes, the limit of the ${receiver}`;
  return new ConnectError(text, Code.ResourceExhausted);
}

/** Returns the error for a call whose header is above the upstream limit. */
export function requestHeaderTooLargeError(limitBytes: number): ConnectError {
  const text = `the header fields are larger than ${limitBytes} bytes, the limit of the upstream`;
  return problem("ERR_HEADER_TOO_LARGE", text);
}

const errorsByResetCode: ReadonlyMap<number, readonly [text: string, code: Code]> = new Map([
  [ErrorCode.refusedStream, ["the server refused the call", Code.Unavailable]],
  [ErrorCode.cancel, ["the server cancelled the call", Code.Canceled]],
  [ErrorCode.enhanceYourCalm, ["the server rejected the call as excessive load", Code.ResourceExhausted]],
  [ErrorCode.inadequateSecurity, ["the connection is not secure enough for the server", Code.PermissionDenied]],
]);

/**
 * Converts an error that was thrown while a response was parsed. The parsers are shared with servers and throw
 * InvalidArgument. A client reports Internal without an identifier, because the server caused the error.
 */
export function responseError(error: unknown): ConnectError {
  const { code, rawMessage, cause } = ConnectError.from(error, Code.Internal);
  if (code !== Code.InvalidArgument) return new ConnectError(rawMessage, code, undefined, undefined, cause);
  return new ConnectError(`the response is not valid: ${rawMessage}`, Code.Internal);
}
