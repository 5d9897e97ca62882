import { type ErrorRecordPolicy, errorCodeOf, type GatewayErrorCode } from "@protoport/gateway";

// Errors that occur before a request matches an operation. Their HTTP status is kept, because proxies depend on it.
const errorsWithoutOperation: ReadonlySet<string | undefined> = new Set<GatewayErrorCode>([
  "ERR_NO_ROUTE",
  "ERR_METHOD_NOT_ALLOWED",
  "ERR_METHOD_UNKNOWN",
  "ERR_URL_TOO_LONG",
  "ERR_HEADER_TOO_LARGE",
  "ERR_REQUEST_TIMEOUT",
  "ERR_CROSS_SITE",
]);

/**
 * Returns the plant store's error record, `{"error": int32, "message": string}`, and the HTTP status. `error` and
 * `message` are always present, even if empty. `error` is the gRPC status code's number.
 *
 * The specification requires status 400 for operation errors. Requests without an operation keep their usual status.
 */
export const errorRecord: ErrorRecordPolicy = (error, { httpStatus }) => ({
  httpStatus: errorsWithoutOperation.has(errorCodeOf(error)) ? httpStatus : 400,
  body: { error: error.code, message: error.rawMessage },
});
