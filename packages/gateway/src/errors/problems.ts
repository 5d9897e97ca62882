import { Code, ConnectError } from "@connectrpc/connect";

/**
 * Every error identifier of the gateway, with its code, its HTTP status on REST, and its meaning. An identifier never
 * changes its meaning; a release may add some.
 *
 * {@link problem} uses the code and the status of the row, unless its caller passes others and says why. Errors without a
 * code never reach a client. The comment of each row is its sentence in docs/reference/identifiers.md, which a test compares; as a
 * value it would be part of each bundle.
 */
export const problems = {
  // The request is wrong as HTTP.
  /** The request does not follow the syntax of HTTP. */
  ERR_HTTP_INVALID: { code: "InvalidArgument", httpStatus: 400 },
  /** The request needs a version or a part of HTTP that is not supported. */
  ERR_HTTP_UNSUPPORTED: { code: "InvalidArgument", httpStatus: 400 },
  /** The URL is longer than `limits.urlBytes`. */
  ERR_URL_TOO_LONG: { code: "ResourceExhausted", httpStatus: 414 },
  /** The header fields are larger than `limits.headerBytes`. */
  ERR_HEADER_TOO_LARGE: { code: "ResourceExhausted", httpStatus: 431 },
  /** The header or the body did not arrive in time. */
  ERR_REQUEST_TIMEOUT: { code: "InvalidArgument", httpStatus: 408 },
  /** The client went away before its response. */
  ERR_CLIENT_GONE: {
    code: "Canceled",
    // Never sent: what nginx logs for a client that closed the connection.
    httpStatus: 499,
  },

  // The request asks for nothing that is served.
  /** The path is not that of an RPC, a rule or an endpoint. */
  ERR_NO_ROUTE: { code: "NotFound", httpStatus: 404 },
  /** The path exists under other methods only, which `Allow` lists. */
  ERR_METHOD_NOT_ALLOWED: {
    code: "Unimplemented",
    // RFC 9110 §15.5.6.
    httpStatus: 405,
  },
  /** Nothing on the server has the method. */
  ERR_METHOD_UNKNOWN: {
    code: "Unimplemented",
    // RFC 9110 §9.1.
    httpStatus: 501,
  },
  /** The body has a content type that this path does not accept. */
  ERR_CONTENT_TYPE: {
    code: "InvalidArgument",
    // RFC 9110 §15.5.16.
    httpStatus: 415,
  },

  // The request is wrong as a call.
  /** The path is malformed, or a field cannot have the value that it names. */
  ERR_PATH_INVALID: { code: "InvalidArgument", httpStatus: 400 },
  /** A query parameter is unknown, malformed or not a value of its field. */
  ERR_QUERY_INVALID: { code: "InvalidArgument", httpStatus: 400 },
  /** The body is not a message of the RPC. */
  ERR_MESSAGE_INVALID: { code: "InvalidArgument", httpStatus: 400 },
  /** The rule has no body, and the request has one. */
  ERR_BODY_UNEXPECTED: { code: "InvalidArgument", httpStatus: 400 },
  /** A message is larger than `readMaxBytes`, compressed or decompressed. */
  ERR_BODY_TOO_LARGE: {
    code: "ResourceExhausted",
    // RFC 9110 §15.5.14; tells it apart from an exhausted quota.
    httpStatus: 413,
  },
  /** Something else read the body first: mount the gateway before any body parser. */
  ERR_BODY_CONSUMED: { code: "Internal", httpStatus: 500 },
  /** The body has a compression that is not supported; the response lists those that are. */
  ERR_ENCODING_UNSUPPORTED: {
    code: "InvalidArgument",
    // RFC 9110 §15.5.16: 415 is also the status of a content coding.
    httpStatus: 415,
  },
  /** The body cannot be decompressed. */
  ERR_ENCODING_INVALID: { code: "InvalidArgument", httpStatus: 400 },
  /** Too many streams in br or zstd are being decompressed at the same time. */
  ERR_DECODING_BUSY: { code: "ResourceExhausted", httpStatus: 429 },
  /** The request does not follow the rules of its protocol, for example of envelopes. */
  ERR_PROTOCOL: { code: "InvalidArgument", httpStatus: 400 },
  /** The deadline of the client is malformed or longer than `maxTimeoutMs`. */
  ERR_TIMEOUT_INVALID: { code: "InvalidArgument", httpStatus: 400 },
  /** The deadline of the call passed before its response. */
  ERR_DEADLINE_EXCEEDED: { code: "DeadlineExceeded", httpStatus: 504 },

  // Health and the proxy.
  /** A health check names a service that this server does not have. */
  ERR_HEALTH_SERVICE: { code: "NotFound", httpStatus: 404 },
  /** Too many clients are watching the health of this server. */
  ERR_HEALTH_WATCHERS: { code: "ResourceExhausted", httpStatus: 429 },
  /** A health watch ended because the server is stopping. */
  ERR_SERVER_STOPPING: { code: "Unavailable", httpStatus: 503 },
  /** The proxy cannot reach its upstream, or lost the connection during the call. */
  ERR_UPSTREAM_UNAVAILABLE: { code: "Unavailable", httpStatus: 503 },
  /** All streams to the upstream are taken, or it does not read what waits to be sent. */
  ERR_UPSTREAM_BUSY: { code: "ResourceExhausted", httpStatus: 429 },
  /** The upstream of the proxy sent a response that does not follow gRPC or its own description. */
  ERR_UPSTREAM_ANSWER: { code: "Internal", httpStatus: 500 },

  // Faults, which no response reveals: the last argument of `onFault`.
  /** A handler or an interceptor threw something other than a `ConnectError`. */
  ERR_HANDLER_FAILED: { code: "Internal", httpStatus: 500 },
  /** `admit`, or another function that every request calls, threw something other than a `ConnectError`. */
  ERR_REQUEST_FAILED: { code: "Internal", httpStatus: 500 },
  /** The response could not be written, for example because a field has a value that JSON cannot express. */
  ERR_ANSWER_FAILED: { code: "Internal", httpStatus: 500 },
  /** A callback threw, such as `onAnswer` or `onFault` itself. Only a failed `toError` changes the response. */
  ERR_CALLBACK_FAILED: { code: "Internal", httpStatus: 500 },
  /** Reported to `onFault`: a defect of the gateway closed a connection. Report it. */
  ERR_CONNECTION_FAILED: {},
  /** Reported to `onFault`: a response has a field whose name or value HTTP does not allow. */
  ERR_HEADER_FIELD: {},

  // Thrown at the program: `code` of the error, as with node's own.
  /** Thrown by `createGateway`: all problems of the rules, or of `requestPathPrefix`. */
  ERR_HTTP_RULES: {},
  /** Thrown by `createGateway` and `createProxy`: a descriptor cannot be used; the message has the reason. */
  ERR_DESCRIPTORS: {},
  /** Thrown by `createGateway` and `listen`: an option cannot be used; the message has the reason. */
  ERR_OPTIONS: {},
} as const;

/** The identifiers of the gateway's errors. */
export type GatewayErrorCode = keyof typeof problems;

/** The identifiers of errors that respond to a request. */
export type ProblemName = {
  [Name in GatewayErrorCode]: (typeof problems)[Name] extends { readonly code: string } ? Name : never;
}[GatewayErrorCode];

/** How an error differs from its row of {@link problems}, and where it comes from. */
export interface ProblemDetails {
  /** Another code. The HTTP status is then the standard one of this code. */
  readonly code?: Code;
  /** Another HTTP status on REST. */
  readonly httpStatus?: number;
  /** What was thrown. Never sent. */
  readonly cause?: unknown;
}

/** Creates an error for clients. Its identifier is not sent: on the wire there is nothing but its code and message. */
export function problem(name: ProblemName, message: string, more: ProblemDetails = {}): ConnectError {
  const { code = Code[problems[name].code], httpStatus, cause } = more;
  const error = Object.assign(new ConnectError(message, code, undefined, undefined, cause), { errorCode: name });
  if (httpStatus !== undefined) givenStatuses.set(error, httpStatus);
  return error;
}

/** The HTTP statuses that {@link problem} was given. Not properties of the errors, which programs log. */
const givenStatuses = new WeakMap<ConnectError, number>();

/**
 * Returns the HTTP status of an error on REST: the one that {@link problem} was given, or that of its row.
 *
 * @returns `undefined` if the standard status of its code is right: for a code other than that of its row, and for an
 * error without a row
 */
export function problemStatusOf(error: ConnectError): number | undefined {
  const given = givenStatuses.get(error);
  if (given !== undefined) return given;
  const { code, httpStatus } = rows.get(errorCodeOf(error) ?? "") ?? {};
  return code !== undefined && error.code === Code[code] ? httpStatus : undefined;
}

/** By any identifier, also one of the program. */
const rows: ReadonlyMap<string, Row> = new Map(Object.entries(problems));

interface Row {
  /** A name of {@link Code}. */
  readonly code?: keyof typeof Code;
  readonly httpStatus?: number;
}

/** Returns an error like this one, with another message: code, HTTP status and identifier stay. */
export function withMessage(error: ConnectError, message: string): ConnectError {
  const other = Object.assign(new ConnectError(message, error.code), { errorCode: errorCodeOf(error) });
  const given = givenStatuses.get(error);
  if (given !== undefined) givenStatuses.set(other, given);
  return other;
}

/**
 * Returns the identifier of the error that answers a request, such as `ERR_NO_ROUTE`: the gateway's, or what a program
 * has set as `errorCode` of its own error; `undefined` if there is none.
 */
export function errorCodeOf(error: ConnectError): string | undefined {
  return "errorCode" in error && typeof error.errorCode === "string" ? error.errorCode : undefined;
}
