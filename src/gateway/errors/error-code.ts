import { type Code, ConnectError } from "@connectrpc/connect";

/** The identifiers of the gateway's errors. None changes its meaning; a release may add some. */
export type GatewayErrorCode =
  // Refusals of a request: `errorCode` of the error that answers it.
  | "ERR_HTTP_INVALID"
  | "ERR_HTTP_UNSUPPORTED"
  | "ERR_URL_TOO_LONG"
  | "ERR_HEADER_TOO_LARGE"
  | "ERR_REQUEST_TIMEOUT"
  | "ERR_NO_ROUTE"
  | "ERR_METHOD_NOT_ALLOWED"
  | "ERR_CONTENT_TYPE"
  | "ERR_PATH_INVALID"
  | "ERR_QUERY_INVALID"
  | "ERR_BODY_UNEXPECTED"
  | "ERR_BODY_TOO_LARGE"
  | "ERR_BODY_CONSUMED"
  | "ERR_ENCODING_UNSUPPORTED"
  | "ERR_ENCODING_INVALID"
  | "ERR_DECODING_BUSY"
  | "ERR_MESSAGE_INVALID"
  | "ERR_PROTOCOL"
  | "ERR_TIMEOUT_INVALID"
  | "ERR_DEADLINE_EXCEEDED"
  | "ERR_CLIENT_GONE"
  | "ERR_HEALTH_SERVICE"
  | "ERR_HEALTH_WATCHERS"
  | "ERR_SERVER_STOPPING"
  | "ERR_UPSTREAM_UNAVAILABLE"
  | "ERR_UPSTREAM_BUSY"
  | "ERR_UPSTREAM_ANSWER"
  // Faults, which no answer reveals: the last argument of `onFault`.
  | "ERR_HANDLER_FAILED"
  | "ERR_REQUEST_FAILED"
  | "ERR_ANSWER_FAILED"
  | "ERR_CALLBACK_FAILED"
  | "ERR_CONNECTION_FAILED"
  // Thrown at the program: `code` of the error, as with node's own.
  | "ERR_HTTP_RULES"
  | "ERR_DESCRIPTORS"
  | "ERR_OPTIONS"
  | "ERR_HEADER_FIELD";

/** What has failed on the server's side: its identifier, and a text for people. */
export interface Failure {
  readonly errorCode: GatewayErrorCode;
  readonly what: string;
}

/** Creates an error for clients that has an identifier, which is not sent: on the wire nothing but `code` and message is. */
export function codedError(errorCode: GatewayErrorCode, message: string, code: Code, cause?: unknown): ConnectError {
  return Object.assign(new ConnectError(message, code, undefined, undefined, cause), { errorCode });
}

/**
 * Returns the identifier of the error that answers a request, such as `ERR_NO_ROUTE`: the gateway's, or what a program
 * has set as `errorCode` of its own error; `undefined` if there is none.
 */
export function errorCodeOf(error: ConnectError): string | undefined {
  return "errorCode" in error && typeof error.errorCode === "string" ? error.errorCode : undefined;
}

/** Returns an error for the program that embeds the gateway, with its identifier as `code`, as node's errors have one. */
export function withCode<E extends Error>(error: E, code: GatewayErrorCode): E {
  return Object.assign(error, { code });
}
