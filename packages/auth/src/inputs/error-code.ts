/**
 * This package's values for `errorCode` in error responses and log lines, in addition to the gateway's. The meaning of
 * an error code never changes. A release may add error codes. docs/reference/errors.md documents each error code.
 */
export type AuthErrorCode =
  // In error responses.
  | "ERR_CREDENTIAL_MISSING"
  | "ERR_CREDENTIAL_MALFORMED"
  | "ERR_TOKEN_INVALID"
  | "ERR_TOKEN_EXPIRED"
  | "ERR_VERIFICATION_UNAVAILABLE"
  | "ERR_SCOPE_INSUFFICIENT"
  | "ERR_RATE_LIMITED"
  // In log lines.
  | "ERR_KEYS_UNAVAILABLE"
  | "ERR_INTROSPECTION_UNAVAILABLE"
  | "ERR_FILE_REFUSED";
