/** This package's `errorCode` values, which never change meaning. protoport/docs/reference/errors.md documents them. */
export type AuthErrorCode =
  // Codes in error responses.
  | "ERR_CREDENTIAL_MISSING"
  | "ERR_CREDENTIAL_MALFORMED"
  | "ERR_TOKEN_INVALID"
  | "ERR_TOKEN_EXPIRED"
  | "ERR_VERIFICATION_UNAVAILABLE"
  | "ERR_SCOPE_INSUFFICIENT"
  | "ERR_RATE_LIMITED"
  // Codes in log lines.
  | "ERR_KEYS_UNAVAILABLE"
  | "ERR_INTROSPECTION_UNAVAILABLE"
  | "ERR_FILE_REFUSED";
