import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { OtlpSender, readOtlpSettings, SpanExporter, type EndedSpan } from "../../../src/telemetry/index.ts";
import { startOtlpReceiver } from "../../support/telemetry/otlp-receiver.ts";
import { quietLog } from "../../support/operations/quiet-log.ts";

function spanAt(at: number): EndedSpan {
  const context = {
    traceId: "0af7651916cd43dd8448eb211c80319c",
    spanId: "b7ad6b7169203331",
    traceFlags: 1,
    traceState: "",
  };
  return {
    context,
    parentSpanId: "",
    name: `span ${at}`,
    kind: "server",
    startMs: at,
    endMs: at,
    attributes: {},
    links: [],
  };
}

function openExporter(url: string, variables: Readonly<Record<string, string>>): SpanExporter {
  const settings = readOtlpSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: url, ...variables });
  if (settings.traces === undefined) throw new Error("traces are not exported");
  return new SpanExporter(new OtlpSender(settings.traces, "traces", quietLog), settings);
}

test("a full queue drops and counts further spans while a collector hangs, and sends the earlier ones after it", async () => {
  await using collector = await startOtlpReceiver();
  const held: ServerResponse[] = [];
  collector.answer = (response) => void held.push(response);
  const variables = { OTEL_BSP_MAX_QUEUE_SIZE: "100", OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "10" };
  const exporter = openExporter(collector.url, variables);
  for (let at = 0; at < 10; at++) exporter.take(spanAt(at));
  await expect.poll(() => held.length).toBe(1);
  expect(exporter.dropped).toEqual({ queue_full: 0, not_taken: 0 });
  for (let at = 10; at < 100_000; at++) exporter.take(spanAt(at));
  expect(exporter.dropped).toEqual({ queue_full: 100_000 - 110, not_taken: 0 });
  collector.answer = (response) => void response.end();
  held[0]?.end();
  await exporter.close();
  expect(collector.spans.map(({ name }) => name)).toEqual(Array.from({ length: 110 }, (_, at) => `span ${at}`));
});

test("spans arrive in their order, in batches, and the last when it is closed", async () => {
  await using collector = await startOtlpReceiver();
  const exporter = openExporter(collector.url, {
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "4",
    OTEL_BSP_SCHEDULE_DELAY: "3600000",
  });
  for (let at = 0; at < 10; at++) exporter.take(spanAt(at));
  await exporter.close();
  expect(collector.spans.map(({ name }) => name)).toEqual(Array.from({ length: 10 }, (_, at) => `span ${at}`));
  expect(collector.requests).toHaveLength(3);
});

test("spans that a collector refuses are lost, and counted", async () => {
  await using collector = await startOtlpReceiver();
  collector.answer = (response) => void response.writeHead(400).end();
  const exporter = openExporter(collector.url, { OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "2" });
  for (let at = 0; at < 5; at++) exporter.take(spanAt(at));
  await exporter.close();
  expect(exporter.dropped).toEqual({ queue_full: 0, not_taken: 5 });
});

test("a batch that a collector could not take is sent again", async () => {
  await using collector = await startOtlpReceiver();
  const statuses = [503, 429, 200];
  collector.answer = (response) => void response.writeHead(statuses[collector.requests.length - 1] ?? 200).end();
  const exporter = openExporter(collector.url, { OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "1" });
  exporter.take(spanAt(1));
  await expect.poll(() => collector.requests.length).toBe(3);
  await exporter.close();
  expect(collector.spans.map(({ name }) => name)).toEqual(Array(3).fill("span 1"));
});
