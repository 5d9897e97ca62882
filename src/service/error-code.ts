/**
 * Error identifiers in the plant store. Each package defines further identifiers. An identifier never changes its
 * meaning. Releases can add identifiers. docs/reference/errors.md documents each identifier.
 */
export type PlantErrorCode =
  // Deletion errors. `errorCode` is the identifier.
  | "ERR_PLANT_NOT_FOUND"
  | "ERR_PLANT_ID_MISSING"
  | "ERR_PLANT_PROTECTED"
  | "ERR_IDEMPOTENCY_KEY_INVALID"
  | "ERR_IDEMPOTENCY_KEY_REUSED"
  | "ERR_SUBJECT_NOT_RECORDABLE"
  | "ERR_QUEUE_FULL"
  | "ERR_STORE_UNAVAILABLE"
  | "ERR_OUTCOME_UNKNOWN"
  // Errors when the server starts. `code` is the identifier.
  | "ERR_CONFIGURATION"
  | "ERR_STORE_OPEN"
  // Problems that are only logged. `errorCode` in the log line is the identifier.
  | "ERR_STORE_FAILED"
  | "ERR_STORE_SECOND_NAME"
  | "ERR_CHECKPOINTS_STALLED"
  | "ERR_RETENTION_FAILED"
  | "ERR_NO_CREDENTIALS"
  | "ERR_CERTIFICATE_EXPIRES"
  | "ERR_TELEMETRY"
  | "ERR_WORKER_EXITED";
