/** Call logs and readiness, request ids and safe errors, for any gateway service. */
export { type AuditedCall, type CallAudit, createCallLog } from "./call-log.ts";
export type { LogErrorCode } from "./error-code.ts";
export { LineOutput } from "./line-output.ts";
export { type Log, type LogLevel, logLevels, openLog, openReserveLog, silentLog } from "./log.ts";
export { logReadiness } from "./readiness-log.ts";
export { createRequestIds, type RequestIdResponses, requestIdKey } from "./request-id.ts";
export { createSafeErrors, type FailedCall, type SafeErrors } from "./safe-errors.ts";
