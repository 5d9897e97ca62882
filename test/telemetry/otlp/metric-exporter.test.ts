import { once } from "node:events";
import { expect, test } from "vitest";
import { MetricExporter, OtlpSender, readOtlpSettings } from "../../../src/telemetry/index.ts";
import { quietLog } from "../../support/operations/quiet-log.ts";

test("metrics that cannot be read when their exporter is closed are a warning of the process", async () => {
  const settings = readOtlpSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" });
  if (settings.metrics === undefined) throw new Error("metrics are not exported");
  const exporter = new MetricExporter(new OtlpSender(settings.metrics, "metrics", quietLog), settings, () => {
    throw new Error("a gauge is broken");
  });
  const warned = once(process, "warning");
  await exporter.close();
  expect(await warned).toMatchObject([{ message: "a gauge is broken" }]);
});
