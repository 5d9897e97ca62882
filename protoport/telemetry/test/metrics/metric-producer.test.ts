import { emptyResource } from "@opentelemetry/resources";
import { DataPointType } from "@opentelemetry/sdk-metrics";
import { expect, test } from "vitest";
import { createMetricProducer } from "../../src/metrics/index.ts";

test("createMetricProducer exports counters as sums with start and end times", async () => {
  const about = { name: "calls", unit: "{call}", description: "Calls", points: [{ attributes: {}, value: 1 }] };
  const { resourceMetrics } = await createMetricProducer("greenhouse", emptyResource(), () => [
    { ...about, kind: "counter" },
    { ...about, kind: "gauge" },
  ]).collect();
  const metrics = resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
  expect(metrics.map(({ dataPointType }) => dataPointType)).toEqual([DataPointType.SUM, DataPointType.GAUGE]);
  const exported = metrics[0]?.dataPoints[0];
  for (const [seconds = 0, nanoseconds = 0] of [exported?.startTime ?? [], exported?.endTime ?? []]) {
    // A tolerance of a minute, because the monotonic clock does not follow corrections to the system clock.
    expect(Math.abs(seconds * 1_000 + nanoseconds / 1e6 - Date.now())).toBeLessThan(60_000);
    expect(nanoseconds).toBeLessThan(1e9);
  }
});
