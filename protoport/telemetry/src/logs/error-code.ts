/**
 * This package's values for `errorCode` in error responses and log lines, in addition to the gateway's. The meaning of
 * an error code never changes. A release may add error codes. protoport/docs/reference/errors.md documents each error code.
 */
export type LogErrorCode = "ERR_CALL_CANCELLED" | "ERR_NOT_READY" | "ERR_LOG_LINES_DROPPED";
