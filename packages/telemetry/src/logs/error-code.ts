/**
 * This package's identifiers, in addition to the gateway's: the `errorCode` values in error responses and log
 * lines. Their meanings never change. A release may add identifiers. docs/reference/errors.md documents each.
 */
export type LogErrorCode = "ERR_CALL_CANCELLED" | "ERR_NOT_READY" | "ERR_LOG_LINES_DROPPED";
