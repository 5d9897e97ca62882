/**
 * Is the server healthy, and what did it do? Logs, request ids, safe errors, readiness, probes, health, reflection and
 * the docs page, for any service of the gateway.
 */
export { Health } from "../gen/grpc/health/v1/health_pb.ts";
export { ServerReflection } from "../gen/grpc/reflection/v1/reflection_pb.ts";
export { type CallAudit, createCallLog } from "./call-log.ts";
export { createDocsPage } from "./docs-page/docs-page.ts";
export { createHealthService, healthRequestBytesMax } from "./health-service.ts";
export { type Log, type LogLevel, logLevels, openLog, openReserveLog, silentLog } from "./log.ts";
export { createRateLimit, type RateLimit, type RateLimitOptions } from "./rate-limit.ts";
export { createProbes, isProbe } from "./probes.ts";
export { Readiness } from "./readiness.ts";
export { logReadiness } from "./readiness-log.ts";
export { createReflectionService } from "./reflection-service.ts";
export { createRequestIds, type RequestIdAnswers, requestIdKey } from "./request-id.ts";
export { createSafeErrors, type SafeErrors } from "./safe-errors.ts";
