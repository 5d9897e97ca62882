/**
 * What did the server do? Logs, request ids, safe errors, rate limits and changes of readiness, for any service of the
 * gateway.
 */
export { type AuditedCall, type CallAudit, createCallLog } from "./call-log.ts";
export { type Log, type LogLevel, logLevels, openLog, openReserveLog, silentLog } from "./log.ts";
export { createRateLimit, type RateLimit, type RateLimitOptions } from "./rate-limit.ts";
export { logReadiness } from "./readiness-log.ts";
export { createRequestIds, type RequestIdAnswers, requestIdKey } from "./request-id.ts";
export { createSafeErrors, type FailedCall, type SafeErrors } from "./safe-errors.ts";
