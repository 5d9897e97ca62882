/**
 * The identifiers of what this package answers and logs, beside those of the gateway: `errorCode` of the error that
 * answers a call, and of lines of the log. None changes its meaning; a release may add some. docs/reference/errors.md and
 * docs/reference/identifiers.md explain each.
 */
export type LogErrorCode = "ERR_CALL_CANCELLED" | "ERR_NOT_READY" | "ERR_LOG_LINES_LOST";
