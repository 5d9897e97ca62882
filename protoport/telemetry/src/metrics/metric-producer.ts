import type { Attributes } from "../conventions/index.ts";
import type { MetricFamily } from "./metrics.ts";

/** A time for OpenTelemetry: seconds since 1970, and nanoseconds. */
type HrTime = [seconds: number, nanoseconds: number];

type Point<Value> = {
  startTime: HrTime;
  endTime: HrTime;
  attributes: Attributes;
  value: Value;
};

type HistogramValue = {
  buckets: { boundaries: number[]; counts: number[] };
  sum: number;
  count: number;
};

/** A metric as `MetricData` of `@opentelemetry/sdk-metrics`. The numbers are values of its enums. */
export type ProducedMetric = {
  descriptor: { name: string; unit: string; description: string; valueType: 1 };
  aggregationTemporality: 1;
} & (
  | { dataPointType: 0; dataPoints: Point<HistogramValue>[] }
  | { dataPointType: 2; dataPoints: Point<number>[] }
  | { dataPointType: 3; dataPoints: Point<number>[]; isMonotonic: true }
);

/** A `MetricProducer` of `@opentelemetry/sdk-metrics`. */
export interface FamilyProducer<SdkResource> {
  collect(): Promise<{
    resourceMetrics: { resource: SdkResource; scopeMetrics: { scope: { name: string }; metrics: ProducedMetric[] }[] };
    errors: unknown[];
  }>;
}

/**
 * Creates a producer that passes metrics to a reader of the OpenTelemetry SDK (`metricProducers`), for example to
 * export the metrics over OTLP. Sums are cumulative, so a failed export loses no counts.
 *
 * @param resource - the resource of the SDK
 * @param collect - returns the current metrics
 */
export function createMetricProducer<SdkResource>(
  scope: string,
  resource: SdkResource,
  collect: () => readonly MetricFamily[],
): FamilyProducer<SdkResource> {
  const startTime = now();
  return {
    collect: async () => {
      const times = { startTime, endTime: now() };
      const metrics = collect().map((family) => toMetric(family, times));
      return { resourceMetrics: { resource, scopeMetrics: [{ scope: { name: scope }, metrics }] }, errors: [] };
    },
  };
}

function toMetric(family: MetricFamily, times: { startTime: HrTime; endTime: HrTime }): ProducedMetric {
  const { name, unit, description } = family;
  const metadata = { descriptor: { name, unit, description, valueType: 1 }, aggregationTemporality: 1 } as const;
  if (family.kind === "histogram") {
    const boundaries = [...family.bounds];
    const dataPoints = family.points.map(({ attributes, counts, sum }) => {
      const count = counts.reduce((all, each) => all + each, 0);
      return { ...times, attributes, value: { buckets: { boundaries, counts: [...counts] }, sum, count } };
    });
    return { ...metadata, dataPointType: 0, dataPoints };
  }
  const dataPoints = family.points.map((point) => ({ ...times, ...point }));
  if (family.kind === "gauge") return { ...metadata, dataPointType: 2, dataPoints };
  return { ...metadata, dataPointType: 3, dataPoints, isMonotonic: true };
}

/** Returns the time, which ignores changes to the system clock. */
function now(): HrTime {
  const ms = performance.timeOrigin + performance.now();
  return [Math.floor(ms / 1_000), Math.round((ms % 1_000) * 1e6)];
}
