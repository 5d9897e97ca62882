/**
 * What did the server do? Logs, request ids, safe errors and changes of readiness, for any service of the gateway.
 */
export { type AuditedCall, type CallAudit, createCallLog } from "./call-log.ts";
export type { LogErrorCode } from "./error-code.ts";
export { type Log, type LogLevel, logLevels, openLog, openReserveLog, silentLog } from "./log.ts";
export { logReadiness } from "./readiness-log.ts";
export { createRequestIds, type RequestIdAnswers, requestIdKey } from "./request-id.ts";
export { createSafeErrors, type FailedCall, type SafeErrors } from "./safe-errors.ts";
