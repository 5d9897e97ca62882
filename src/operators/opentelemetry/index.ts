/**
 * How does OpenTelemetry see the requests? Spans by its API, `@opentelemetry/api`, for whichever SDK is registered.
 *
 * It is loaded only where there is an SDK. It knows the hooks of the gateway, and neither plants nor credentials.
 */
export { createTracing, type SharedWork, type TraceIds, traceIdsOf, type Tracing } from "./tracing.ts";
