/**
 * The identifiers of this package, in addition to those of the gateway: `errorCode` of an error response or of a log
 * line. Their meanings never change; a release may add identifiers. docs/reference/errors.md and
 * docs/reference/identifiers.md document each.
 */
export type LogErrorCode = "ERR_CALL_CANCELLED" | "ERR_NOT_READY" | "ERR_LOG_LINES_DROPPED";
