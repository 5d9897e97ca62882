import type { HrTime, ValueType } from "@opentelemetry/api";
import type {
  AggregationTemporality,
  DataPoint,
  DataPointType,
  MetricData,
  MetricProducer,
  ResourceMetrics,
} from "@opentelemetry/sdk-metrics";
import type { MetricFamily } from "@protoport/telemetry/metrics";

// Copies enum values from the SDK, because the SDK is an optional dependency.
const double: ValueType.DOUBLE = 1;
const cumulative: AggregationTemporality.CUMULATIVE = 1;
const histogram: DataPointType.HISTOGRAM = 0;
const gauge: DataPointType.GAUGE = 2;
const sumType: DataPointType.SUM = 3;

/**
 * Creates a producer that passes the server's metrics to a metric reader in the OpenTelemetry SDK. The reader also gets
 * the metrics from the SDK's meters. Sums are cumulative, so a failed export loses no counts.
 *
 * @param collect - returns the current metrics
 */
export function createMetricProducer(
  resource: ResourceMetrics["resource"],
  collect: () => readonly MetricFamily[],
): MetricProducer {
  const startTime = now();
  return {
    collect: () => {
      const endTime = now();
      const metrics = collect().map((family) => toMetricData(family, { startTime, endTime }));
      const scopeMetrics = [{ scope: { name: "plantstore" }, metrics }];
      return Promise.resolve({ resourceMetrics: { resource, scopeMetrics }, errors: [] });
    },
  };
}

function toMetricData(family: MetricFamily, times: Pick<DataPoint<unknown>, "startTime" | "endTime">): MetricData {
  const { name, unit, description } = family;
  const metadata = { descriptor: { name, unit, description, valueType: double }, aggregationTemporality: cumulative };
  if (family.kind === "histogram") {
    const boundaries = [...family.bounds];
    const dataPoints = family.points.map(({ attributes, counts, sum: total }) => {
      const count = counts.reduce((all, each) => all + each, 0);
      return { ...times, attributes, value: { buckets: { boundaries, counts: [...counts] }, sum: total, count } };
    });
    return { ...metadata, dataPointType: histogram, dataPoints };
  }
  const dataPoints = family.points.map((point) => ({ ...times, ...point }));
  if (family.kind === "gauge") return { ...metadata, dataPointType: gauge, dataPoints };
  return { ...metadata, dataPointType: sumType, dataPoints, isMonotonic: true };
}

/** Returns the time as seconds since 1970 and nanoseconds. The time ignores changes to the system clock. */
function now(): HrTime {
  const ms = performance.timeOrigin + performance.now();
  return [Math.floor(ms / 1_000), Math.round((ms % 1_000) * 1e6)];
}
