/**
 * The identifiers of what this package refuses and logs, beside those of the gateway: `errorCode` of the error that answers
 * a call, and of lines of the log. None changes its meaning; a release may add some. docs/reference/errors.md and
 * docs/reference/identifiers.md explain each.
 */
export type AuthErrorCode =
  // Refusals of a credential, and of a call.
  | "ERR_CREDENTIAL_MISSING"
  | "ERR_CREDENTIAL_MALFORMED"
  | "ERR_TOKEN_INVALID"
  | "ERR_TOKEN_EXPIRED"
  | "ERR_TOKEN_UNCHECKED"
  | "ERR_SCOPE_INSUFFICIENT"
  | "ERR_RATE_LIMITED"
  // Lines of the log.
  | "ERR_KEYS_UNAVAILABLE"
  | "ERR_INTROSPECTION_UNAVAILABLE"
  | "ERR_FILE_REFUSED";
