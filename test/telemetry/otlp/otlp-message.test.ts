import { fromBinary, toJson } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ExportMetricsServiceRequestSchema } from "../../../src/gen/es/opentelemetry/otlp_pb.ts";
import { writeMetrics } from "../../../src/telemetry/otlp/otlp-message.ts";

const times = { startTimeUnixNano: "1000000000", timeUnixNano: "2000500000" };
const about = { unit: "1", description: "What it says" };

function attribute(key: string, value: object): object {
  return { key, value };
}

test("metrics are written with their resource, scope, times, attributes and values, and without empty families", () => {
  const bytes = writeMetrics(
    { "service.name": "plants" },
    [
      {
        ...about,
        name: "counter",
        kind: "counter",
        points: [{ attributes: { text: "a", whole: 7, half: 0.5, is: true }, value: 3 }],
      },
      { ...about, name: "gauge", kind: "gauge", points: [{ attributes: {}, value: 0.25 }] },
      {
        ...about,
        name: "histogram",
        kind: "histogram",
        bounds: [1, 10],
        points: [{ attributes: { text: "b" }, counts: [2, 0, 3], sum: 61.5 }],
      },
      { ...about, name: "empty", kind: "counter", points: [] },
    ],
    { startMs: 1_000, nowMs: 2_000.5 },
  );
  const cumulative = { aggregationTemporality: "AGGREGATION_TEMPORALITY_CUMULATIVE" };
  expect(toJson(ExportMetricsServiceRequestSchema, fromBinary(ExportMetricsServiceRequestSchema, bytes))).toEqual({
    resourceMetrics: [
      {
        resource: { attributes: [attribute("service.name", { stringValue: "plants" })] },
        scopeMetrics: [
          {
            scope: { name: "plantstore" },
            metrics: [
              {
                ...about,
                name: "counter",
                sum: {
                  ...cumulative,
                  isMonotonic: true,
                  dataPoints: [
                    {
                      ...times,
                      asDouble: 3,
                      attributes: [
                        attribute("text", { stringValue: "a" }),
                        attribute("whole", { intValue: "7" }),
                        attribute("half", { doubleValue: 0.5 }),
                        attribute("is", { boolValue: true }),
                      ],
                    },
                  ],
                },
              },
              { ...about, name: "gauge", gauge: { dataPoints: [{ ...times, asDouble: 0.25 }] } },
              {
                ...about,
                name: "histogram",
                histogram: {
                  ...cumulative,
                  dataPoints: [
                    {
                      ...times,
                      attributes: [attribute("text", { stringValue: "b" })],
                      count: "5",
                      sum: 61.5,
                      bucketCounts: ["2", "0", "3"],
                      explicitBounds: [1, 10],
                    },
                  ],
                },
              },
            ],
          },
        ],
      },
    ],
  });
});
