import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import {
  type EndedSpan,
  type ExportLog,
  OtlpSender,
  readOtlpSettings,
  SpanExporter,
} from "../../../src/telemetry/index.ts";
import { within } from "../../support/deadline.ts";
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

function openExporter(
  url: string,
  variables: Readonly<Record<string, string>>,
  log: ExportLog = quietLog,
): SpanExporter {
  const settings = readOtlpSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: url, ...variables });
  if (settings.traces === undefined) throw new Error("traces are not exported");
  return new SpanExporter(new OtlpSender(settings.traces, "traces", log), settings);
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

test("a batch that a collector could not take is sent again, and the log says when that began and ended", async () => {
  await using collector = await startOtlpReceiver();
  const statuses = [503, 429, 200];
  collector.answer = (response) => void response.writeHead(statuses[collector.requests.length - 1] ?? 200).end();
  const lines: unknown[] = [];
  const log: ExportLog = {
    info: (fields, message) => void lines.push(["info", fields, message]),
    warn: (fields, message) => void lines.push(["warn", fields, message]),
  };
  const exporter = openExporter(collector.url, { OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "1" }, log);
  exporter.take(spanAt(1));
  await expect.poll(() => collector.requests.length).toBe(3);
  await exporter.close();
  expect(collector.spans.map(({ name }) => name)).toEqual(Array(3).fill("span 1"));
  expect(lines).toEqual([
    ["warn", { signal: "traces", problem: "the collector answered 503" }, "telemetry cannot be exported"],
    ["info", { signal: "traces" }, "telemetry can be exported again"],
  ]);
});

test("an exporter that is closed waits for no collector that asks for patience: each batch has one attempt more", async () => {
  await using collector = await startOtlpReceiver();
  collector.answer = (response) => void response.writeHead(503, { "retry-after": "30" }).end();
  const warnings: string[] = [];
  const log: ExportLog = { ...quietLog, warn: (_, message) => void warnings.push(message) };
  const exporter = openExporter(collector.url, { OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "1" }, log);
  exporter.take(spanAt(1));
  // Once it has read the answer, it waits.
  await expect.poll(() => warnings).toEqual(["telemetry cannot be exported"]);
  exporter.take(spanAt(2));
  await within(exporter.close(), "the end of the exporter", 20_000);
  expect(exporter.dropped).toEqual({ queue_full: 0, not_taken: 2 });
  expect(collector.requests).toHaveLength(3);
});

test("an exporter that is being closed sends what it still takes, one batch at a time, and then ends", async () => {
  await using collector = await startOtlpReceiver();
  const held: ServerResponse[] = [];
  collector.answer = (response) => void held.push(response);
  const exporter = openExporter(collector.url, { OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "2" });
  exporter.take(spanAt(1));
  let isClosed = false;
  const closing = exporter.close().then(() => (isClosed = true));
  await expect.poll(() => held.length).toBe(1);
  exporter.take(spanAt(2));
  exporter.take(spanAt(3));
  held[0]?.writeHead(400).end();
  await expect.poll(() => [held.length, exporter.dropped.not_taken]).toEqual([2, 1]);
  expect(isClosed).toBe(false);
  held[1]?.end();
  await closing;
  expect(collector.spans.map(({ name }) => name)).toEqual(["span 1", "span 2", "span 3"]);
});

test("spans that come during an export wait until they fill a batch", async () => {
  await using collector = await startOtlpReceiver();
  collector.answer = (response) => void response.writeHead(collector.requests.length === 1 ? 400 : 200).end();
  const exporter = openExporter(collector.url, {
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "4",
    OTEL_BSP_SCHEDULE_DELAY: "3600000",
  });
  for (let at = 0; at < 5; at++) exporter.take(spanAt(at));
  await expect.poll(() => exporter.dropped.not_taken).toBe(4);
  for (let at = 5; at < 8; at++) exporter.take(spanAt(at));
  await exporter.close();
  expect(collector.requests).toHaveLength(2);
  expect(collector.spans).toHaveLength(8);
});
