/**
 * Metric and span names and attributes by OpenTelemetry's semantic conventions.
 *
 * The module records nothing and has no dependencies, so that the Prometheus metrics and the OpenTelemetry adapter can
 * share the module.
 */
export {
  type Attributes,
  durationBounds,
  type Instrument,
  type Instruments,
  type MetricDescription,
} from "./instruments.ts";
export { httpAttributes, isRpcProtocol, rpcAttributes } from "./request-attributes.ts";
export {
  callEndAttributes,
  type CallObserver,
  createCallDurations,
  type MeasuredCall,
  type MeasuredCallEnd,
  rpcMethodOf,
} from "./upstream-calls.ts";
export { createRequestDurations, createRequestMetrics, type RequestMetricsOptions } from "./request-metrics.ts";
