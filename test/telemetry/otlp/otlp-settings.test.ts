import { describe, expect, test } from "vitest";
import { readOtlpSettings } from "../../../src/telemetry/index.ts";

const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318" };

describe("where and how signals are exported", () => {
  test.each<{ name: string; variables: Record<string, string>; traces?: string; metrics?: string }>([
    { name: "nowhere by default", variables: {} },
    {
      name: "below the endpoint for all",
      variables: endpoint,
      traces: "http://collector:4318/v1/traces",
      metrics: "http://collector:4318/v1/metrics",
    },
    {
      name: "below one that ends in a slash",
      variables: { OTEL_EXPORTER_OTLP_ENDPOINT: "https://collector/otlp/" },
      traces: "https://collector/otlp/v1/traces",
      metrics: "https://collector/otlp/v1/metrics",
    },
    {
      name: "to an endpoint of its own as it is",
      variables: { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://traces/here" },
      traces: "http://traces/here",
    },
    {
      name: "not the signal that is switched off",
      variables: { ...endpoint, OTEL_METRICS_EXPORTER: "none" },
      traces: "http://collector:4318/v1/traces",
    },
    { name: "nothing where all is switched off", variables: { ...endpoint, OTEL_SDK_DISABLED: "TRUE" } },
  ])("$name", ({ variables, traces, metrics }) => {
    const settings = readOtlpSettings(variables);
    expect([settings.traces?.url, settings.metrics?.url, settings.problems]).toEqual([traces, metrics, []]);
  });

  test.each([
    { url: "ftp://collector", says: "is not an http or https URL" },
    { url: "collector:4318", says: "is not an http or https URL" },
    { url: "http://user:secret@collector:4318", says: "has credentials, which belong in OTEL_EXPORTER_OTLP_HEADERS" },
    { url: "http://user@collector:4318", says: "has credentials, which belong in OTEL_EXPORTER_OTLP_HEADERS" },
    { url: "http://:secret@collector:4318", says: "has credentials, which belong in OTEL_EXPORTER_OTLP_HEADERS" },
  ])("not to $url, and the problem shows no password", ({ url, says }) => {
    const { traces, metrics, problems } = readOtlpSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: url });
    expect([traces, metrics]).toEqual([undefined, undefined]);
    expect(problems).toEqual([
      `OTEL_EXPORTER_OTLP_ENDPOINT ${says}: no traces are exported`,
      `OTEL_EXPORTER_OTLP_ENDPOINT ${says}: no metrics are exported`,
    ]);
  });

  test.each<{ variables: Record<string, string>; traces: number; metrics: number; problems?: number }>([
    { variables: {}, traces: 10_000, metrics: 10_000 },
    { variables: { OTEL_EXPORTER_OTLP_TIMEOUT: "500" }, traces: 500, metrics: 500 },
    {
      variables: { OTEL_EXPORTER_OTLP_TIMEOUT: "500", OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: "7" },
      traces: 7,
      metrics: 500,
    },
    // AbortSignal.timeout() takes whole milliseconds, and a timer at least one.
    { variables: { OTEL_EXPORTER_OTLP_TIMEOUT: "0" }, traces: 1, metrics: 1 },
    { variables: { OTEL_EXPORTER_OTLP_TIMEOUT: "1.6" }, traces: 2, metrics: 2 },
    { variables: { OTEL_EXPORTER_OTLP_TIMEOUT: "soon" }, traces: 10_000, metrics: 10_000, problems: 2 },
    { variables: { OTEL_EXPORTER_OTLP_TIMEOUT: "-1" }, traces: 10_000, metrics: 10_000, problems: 2 },
    { variables: { OTEL_EXPORTER_OTLP_TIMEOUT: "86400001" }, traces: 10_000, metrics: 10_000, problems: 2 },
  ])("within as many milliseconds as $variables says", ({ variables, traces, metrics, problems = 0 }) => {
    const settings = readOtlpSettings({ ...endpoint, ...variables });
    expect([settings.traces?.timeoutMs, settings.metrics?.timeoutMs]).toEqual([traces, metrics]);
    expect(settings.problems).toHaveLength(problems);
  });
});
