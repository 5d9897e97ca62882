/**
 * What happens in the server, and how long does it take? Metrics and traces by the semantic conventions of OpenTelemetry,
 * for any service of the gateway.
 *
 * It is loaded only where something is measured. It knows neither plants nor credentials; `server/` adds their metrics.
 */
export {
  type MeasuredGateway,
  type MeasuredReadiness,
  measureGateway,
  measureReadiness,
} from "./metrics/gateway-metrics.ts";
export type {
  Attributes,
  HistogramPoint,
  MetricDescription,
  MetricFamily,
  NumberPoint,
} from "./metrics/metric-family.ts";
export { createMetricsEndpoint } from "./metrics/metrics-endpoint.ts";
export { durationBounds, Metrics } from "./metrics/metrics.ts";
export { measureProcess } from "./metrics/process-metrics.ts";
export { prometheusName } from "./metrics/prometheus-text.ts";
export { createRequestMetrics, type RequestMetricsOptions } from "./metrics/request-metrics.ts";
export type { CounterSeries, HistogramSeries, SeriesTable } from "./metrics/series.ts";
export { MetricExporter } from "./otlp/metric-exporter.ts";
export { type ExportLog, OtlpSender } from "./otlp/otlp-sender.ts";
export { type OtlpSettings, type OtlpTarget, readOtlpSettings } from "./otlp/otlp-settings.ts";
export { SpanExporter } from "./otlp/span-exporter.ts";
export { createSampler, type Sampler, type SamplerName, samplerNames } from "./traces/sampler.ts";
export type { EndedSpan } from "./traces/span.ts";
export { formatTraceparent, type SpanContext } from "./traces/trace-context.ts";
export {
  activeTrace,
  createTracing,
  type RequestTrace,
  type SharedWork,
  traceKey,
  type Tracing,
  type TracingOptions,
} from "./traces/tracing.ts";
