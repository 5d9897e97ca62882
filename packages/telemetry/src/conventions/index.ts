/**
 * What do metrics and spans say of a request? Names and attributes by the semantic conventions of OpenTelemetry.
 *
 * It records nothing itself and loads nothing, so it serves our own metrics and OpenTelemetry's alike.
 */
export {
  type Attributes,
  durationBounds,
  type Instrument,
  type Instruments,
  type MetricDescription,
} from "./instruments.ts";
export { httpAttributes, isRpcProtocol, rpcAttributes } from "./request-attributes.ts";
export { createRequestDurations, createRequestMetrics, type RequestMetricsOptions } from "./request-metrics.ts";
