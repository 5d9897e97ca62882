/**
 * Every gateway error identifier, with its code, its HTTP status on REST, and its meaning. An identifier never changes
 * its meaning. A release may add identifiers.
 *
 * `problem()` uses the code and the status listed here unless its caller passes others. Errors without a code never
 * reach a client. A test compares each entry's comment with protoport/docs/reference/errors.md. The meanings are comments,
 * because values would be part of every bundle.
 */
export const problems = {
  // The request is not valid HTTP.
  /** The request violates the syntax of HTTP. */
  ERR_HTTP_INVALID: { code: "InvalidArgument", httpStatus: 400 },
  /** The request needs an HTTP version or feature that is not supported. */
  ERR_HTTP_UNSUPPORTED: { code: "InvalidArgument", httpStatus: 400 },
  /** The URL is longer than `limits.urlBytes`. */
  ERR_URL_TOO_LONG: { code: "ResourceExhausted", httpStatus: 414 },
  /** The header fields are larger than `limits.headerBytes`. */
  ERR_HEADER_TOO_LARGE: { code: "ResourceExhausted", httpStatus: 431 },
  /** The header or the body did not arrive in time. */
  ERR_REQUEST_TIMEOUT: { code: "InvalidArgument", httpStatus: 408 },
  /** The client disconnected before its response. */
  ERR_CLIENT_GONE: {
    code: "Canceled",
    // Status 499 is never sent. nginx logs this status when a client closes the connection.
    httpStatus: 499,
  },

  // No route matches the request.
  /** No RPC, rule or endpoint has this path. */
  ERR_NO_ROUTE: { code: "NotFound", httpStatus: 404 },
  /** The path exists only with the methods that `Allow` lists. */
  ERR_METHOD_NOT_ALLOWED: {
    code: "Unimplemented",
    // 405 is the status for an unsupported method (RFC 9110 §15.5.6).
    httpStatus: 405,
  },
  /** The method is neither registered at IANA nor used by a route. */
  ERR_METHOD_UNKNOWN: {
    code: "Unimplemented",
    // 501 is the status for an unknown method (RFC 9110 §9.1).
    httpStatus: 501,
  },
  /** A page of another site sent a POST without a preflight. */
  ERR_CROSS_SITE: {
    code: "PermissionDenied",
    httpStatus: 403,
  },
  /** The path does not accept the body's content type. */
  ERR_CONTENT_TYPE: {
    code: "InvalidArgument",
    // RFC 9110 §15.5.16.
    httpStatus: 415,
  },

  // The request is not a valid call.
  /** The path is malformed, or a variable is not valid for its field. */
  ERR_PATH_INVALID: { code: "InvalidArgument", httpStatus: 400 },
  /** A query parameter is unknown, malformed or not valid for its field. */
  ERR_QUERY_INVALID: { code: "InvalidArgument", httpStatus: 400 },
  /** The body is not a valid request message of the RPC. */
  ERR_MESSAGE_INVALID: { code: "InvalidArgument", httpStatus: 400 },
  /** The message violates rules of its definition, which the details list. */
  ERR_RULES_VIOLATED: { code: "InvalidArgument", httpStatus: 400 },
  /** The request has a body, and the rule has none. */
  ERR_BODY_UNEXPECTED: { code: "InvalidArgument", httpStatus: 400 },
  /** A message is larger than `readMaxBytes`, compressed or decompressed. */
  ERR_BODY_TOO_LARGE: {
    code: "ResourceExhausted",
    // 413 is the status for a large body (RFC 9110 §15.5.14), and differs from the status for an exhausted quota.
    httpStatus: 413,
  },
  /** The body was read before the gateway got it. Mount the gateway before any body parser. */
  ERR_BODY_CONSUMED: { code: "Internal", httpStatus: 500 },
  /** The body's compression is not supported. The response lists the supported compressions. */
  ERR_ENCODING_UNSUPPORTED: {
    code: "InvalidArgument",
    // 415 is also the status for an unsupported content coding (RFC 9110 §15.5.16).
    httpStatus: 415,
  },
  /** The body cannot be decompressed. */
  ERR_ENCODING_INVALID: { code: "InvalidArgument", httpStatus: 400 },
  /** Too many br or zstd streams are being decompressed. */
  ERR_DECODING_BUSY: { code: "ResourceExhausted", httpStatus: 429 },
  /** The request violates its protocol, such as the format of envelopes. */
  ERR_PROTOCOL: { code: "InvalidArgument", httpStatus: 400 },
  /** The client's timeout is malformed or longer than `maxTimeoutMs`. */
  ERR_TIMEOUT_INVALID: { code: "InvalidArgument", httpStatus: 400 },
  /** The deadline passed before the response. */
  ERR_DEADLINE_EXCEEDED: { code: "DeadlineExceeded", httpStatus: 504 },

  // Health and the proxy.
  /** A health check names an unknown service. */
  ERR_HEALTH_SERVICE: { code: "NotFound", httpStatus: 404 },
  /** Too many clients are watching the server's health. */
  ERR_HEALTH_WATCHERS: { code: "ResourceExhausted", httpStatus: 429 },
  /** A call or health watch ended because the server is stopping. */
  ERR_SERVER_STOPPING: { code: "Unavailable", httpStatus: 503 },
  /** The proxy cannot reach the upstream, or lost the connection. */
  ERR_UPSTREAM_UNAVAILABLE: { code: "Unavailable", httpStatus: 503 },
  /** All streams to the upstream are in use, or the upstream reads too slowly. */
  ERR_UPSTREAM_BUSY: { code: "ResourceExhausted", httpStatus: 429 },
  /** The upstream's response violates gRPC or does not match its descriptor. */
  ERR_UPSTREAM_RESPONSE: { code: "Internal", httpStatus: 500 },

  // Faults: the last argument of `onFault`. Responses do not reveal their cause.
  /** A handler or interceptor threw something other than a `ConnectError`. */
  ERR_HANDLER_FAILED: { code: "Internal", httpStatus: 500 },
  /** A hook such as `admit` threw something other than a `ConnectError`. */
  ERR_REQUEST_FAILED: { code: "Internal", httpStatus: 500 },
  /** The response cannot be written, for example a value that JSON does not allow. */
  ERR_RESPONSE_FAILED: { code: "Internal", httpStatus: 500 },
  /** A callback such as `onResponse` threw. Only `toError` and `rest.errorRecord` then change the response. */
  ERR_CALLBACK_FAILED: { code: "Internal", httpStatus: 500 },
  /** Reported to `onFault`: a defect of the gateway closed a connection. Report it. */
  ERR_CONNECTION_FAILED: {},
  /** Reported to `onFault`: HTTP does not allow a response header field, so it was not sent. */
  ERR_HEADER_FIELD: {},

  // Thrown to the application: the `code` of the error, as in node's errors.
  /** Thrown by `createGateway`: invalid rules or `requestPathPrefix`. */
  ERR_HTTP_RULES: {},
  /** Thrown by `createGateway` and `createProxy`: an invalid descriptor. */
  ERR_DESCRIPTORS: {},
  /** Thrown by `createGateway` and `listen`: an invalid option. */
  ERR_OPTIONS: {},
} as const;

/** All identifiers that gateway errors have. */
export type GatewayErrorCode = keyof typeof problems;

/** The identifiers that a response can have. */
export type ProblemName = {
  [Name in GatewayErrorCode]: (typeof problems)[Name] extends { readonly code: string } ? Name : never;
}[GatewayErrorCode];

/** A gRPC code's name. Connect's numeric codes would make this package depend on Connect. */
export type CodeName = (typeof problems)[ProblemName]["code"];

/** The options that errors name. protoport/docs/reference/gateway-options.md lists what each accepts. */
export type NamedOption =
  | "acceptCompression"
  | "cors.origins"
  | "cors.origins or crossSite"
  | "ignoreBodies"
  | "jsonClientStreams"
  | "jsonOptions.registry"
  | "lenient"
  | "lenient or ignoredQueryParameters"
  | "limits.headerBytes"
  | "limits.headerTimeoutMs"
  | "limits.requestTimeoutMs"
  | "limits.urlBytes"
  | "mapsInQuery"
  | "maxTimeoutMs"
  | "readMaxBytes"
  | "requireConnectProtocolHeader"
  | "rest.json.canonicalIntegers"
  | "rest.json.unknownFields"
  | "sameValueAsPath or lenient";

/** A server-side failure with an error identifier and a description for people. */
export interface Failure {
  readonly errorCode: GatewayErrorCode;
  readonly what: string;
}

/** A failed request. The client gets an error response. */
export interface RequestFailure extends Failure {
  readonly errorCode: ProblemName;
}

/** Adds the identifier to an error that is thrown to the application. The property is `code`, as in node's errors. */
export function withCode<E extends Error>(error: E, code: GatewayErrorCode): E {
  return Object.assign(error, { code });
}

/** Returns the message of an error, or converts another thrown value to a string. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Maximum number of characters that an error message quotes from a client's or server's string. */
const maxQuoted = 200;

/** Returns a client's or server's string on one line and truncated, so that an error message can quote the string. */
export function toShortLine(text: string): string {
  const line = toOneLine(text);
  return line.length > maxQuoted ? `${line.slice(0, maxQuoted)}…` : line;
}

/** Removes control characters, with which a client could forge a log line or control a terminal. */
export function toOneLine(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.replaceAll(/[\x00-\x1f\x7f-\x9f]+/g, " ");
}

/** Returns whether NODE_ENV is `production`. Bundlers replace the expression by its value. */
export function isProduction(): boolean {
  try {
    return process.env["NODE_ENV"] === "production";
  } catch {
    // The platform has no `process`, or Deno does not allow access to the environment.
    return false;
  }
}
