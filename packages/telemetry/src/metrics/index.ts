/**
 * The entry `@plantstore/telemetry/metrics`: metrics by the semantic conventions of OpenTelemetry, and the endpoint
 * `/metrics` for Prometheus.
 */
export {
  type MeasuredFile,
  type MeasuredGateway,
  type MeasuredProxy,
  type MeasuredReadiness,
  type MeasuredUpstream,
  measureDescriptors,
  measureFiles,
  measureGateway,
  measureReadiness,
  measureUpstreams,
} from "./gateway-metrics.ts";
export {
  type Attributes,
  createRequestMetrics,
  durationBounds,
  httpAttributes,
  type Instrument,
  type Instruments,
  type MetricDescription,
  type RequestMetricsOptions,
  rpcAttributes,
} from "../conventions/index.ts";
export type { HistogramPoint, MetricFamily, NumberPoint } from "./metric-family.ts";
export { createMetricsEndpoint } from "./metrics-endpoint.ts";
export { Metrics } from "./metrics.ts";
export { measureProcess } from "./process-metrics.ts";
export { prometheusName } from "./prometheus-text.ts";
export type { CounterSeries, HistogramSeries, SeriesTable } from "./series.ts";
