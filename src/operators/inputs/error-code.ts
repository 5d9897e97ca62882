/**
 * The identifiers of what these parts refuse and log, beside those of the gateway: `errorCode` of the error that answers
 * a call, and of lines of the log. None changes its meaning; a release may add some. docs/errors.md and
 * docs/identifiers.md explain each.
 */
export type OperatorErrorCode =
  // Refusals of a credential, and of a call.
  | "ERR_CREDENTIAL_MISSING"
  | "ERR_CREDENTIAL_MALFORMED"
  | "ERR_TOKEN_INVALID"
  | "ERR_TOKEN_EXPIRED"
  | "ERR_TOKEN_UNCHECKED"
  | "ERR_SCOPE_INSUFFICIENT"
  | "ERR_RATE_LIMITED"
  | "ERR_CALL_CANCELLED"
  // Lines of the log.
  | "ERR_NOT_READY"
  | "ERR_KEYS_UNAVAILABLE"
  | "ERR_INTROSPECTION_UNAVAILABLE"
  | "ERR_FILE_REFUSED"
  | "ERR_LOG_LINES_LOST";
