/**
 * The entry `@protoport/telemetry/metrics`: metrics by OpenTelemetry's semantic conventions, and the endpoint
 * `/metrics` for Prometheus.
 */
export {
  type MeasuredFile,
  type MeasuredGateway,
  type MeasuredReadiness,
  measureFiles,
  measureGateway,
  measureReadiness,
} from "./gateway-metrics.ts";
export { type MeasuredProxy, type MeasuredUpstream, measureDescriptors, measureUpstreams } from "./upstream-metrics.ts";
export {
  type Attributes,
  type CallObserver,
  createRequestMetrics,
  durationBounds,
  httpAttributes,
  type Instrument,
  type Instruments,
  type MeasuredCall,
  type MeasuredCallEnd,
  type MetricDescription,
  type RequestMetricsOptions,
  rpcAttributes,
} from "../conventions/index.ts";
export {
  type CounterSeries,
  type HistogramPoint,
  type HistogramSeries,
  type MetricFamily,
  Metrics,
  type NumberPoint,
  type SeriesTable,
} from "./metrics.ts";
export { createMetricProducer, type FamilyProducer, type ProducedMetric } from "./metric-producer.ts";
export { createMetricsEndpoint, prometheusName } from "./metrics-endpoint.ts";
export { measureProcess } from "./process-metrics.ts";
