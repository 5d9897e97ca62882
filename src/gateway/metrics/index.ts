/**
 * What happens in the server, and how long does it take? Metrics by the semantic conventions of OpenTelemetry, and the
 * endpoint `/metrics` for Prometheus, for any service: the entry `@plantstore/gateway/metrics`.
 */
export { type MeasuredGateway, type MeasuredReadiness, measureGateway, measureReadiness } from "./gateway-metrics.ts";
export type { Attributes, HistogramPoint, MetricDescription, MetricFamily, NumberPoint } from "./metric-family.ts";
export { createMetricsEndpoint } from "./metrics-endpoint.ts";
export { durationBounds, Metrics } from "./metrics.ts";
export { measureProcess } from "./process-metrics.ts";
export { prometheusName } from "./prometheus-text.ts";
export { httpAttributes, rpcAttributes } from "./request-attributes.ts";
export { createRequestMetrics, type RequestMetricsOptions } from "./request-metrics.ts";
export type { CounterSeries, HistogramSeries, SeriesTable } from "./series.ts";
