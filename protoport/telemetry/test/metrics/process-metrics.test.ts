import { createHistogram } from "node:perf_hooks";
import { expect, test, vi } from "vitest";
import { durationBounds } from "../../src/conventions/index.ts";
import { type MetricFamily, Metrics } from "../../src/metrics/metrics.ts";
import { measureProcess, readDelays } from "../../src/metrics/process-metrics.ts";
import { collectGarbage } from "@protoport/testing/process";

test("measureProcess exports CPU time, memory, uptime and event loop time", () => {
  const startMs = performance.now();
  const metrics = new Metrics();
  using _ = measureProcess(metrics);
  const before = process.cpuUsage();
  const families = new Map(metrics.collect().map(({ name, points }) => [name, points]));
  const after = process.cpuUsage();
  const valuesOf = (name: string): unknown[] =>
    (families.get(name) ?? []).map((point) => ("value" in point ? point.value : undefined));
  const modesOf = (name: string): unknown[] => (families.get(name) ?? []).map(({ attributes }) => attributes);
  expect(modesOf("process.cpu.time")).toEqual([{ "cpu.mode": "user" }, { "cpu.mode": "system" }]);
  const states = ["active", "idle"].map((state) => ({ "nodejs.eventloop.state": state }));
  expect(modesOf("nodejs.eventloop.time")).toEqual(states);
  const [user, system] = valuesOf("process.cpu.time").map(Number);
  expect(user).toBeGreaterThanOrEqual(before.user / 1e6);
  expect(user).toBeLessThanOrEqual(after.user / 1e6);
  expect(system).toBeGreaterThanOrEqual(before.system / 1e6);
  expect(system).toBeLessThanOrEqual(after.system / 1e6);
  const [bytes] = valuesOf("process.memory.usage");
  expect(bytes).toBeGreaterThan(2 ** 20);
  expect(bytes).toBeLessThan(2 ** 40);
  const [uptime] = valuesOf("process.uptime").map(Number);
  expect(uptime).toBeGreaterThan(0);
  expect(uptime).toBeLessThanOrEqual(process.uptime());
  const [active, idle] = valuesOf("nodejs.eventloop.time").map(Number);
  // The event loop's times start with the measurement.
  expect((active ?? 0) + (idle ?? 0)).toBeLessThanOrEqual((performance.now() - startMs) / 1_000 + 0.001);
  expect(valuesOf("nodejs.eventloop.delay.p99")).toEqual([0]);
});

test("measureProcess exports heap spaces and garbage collections until it is disposed", async () => {
  const metrics = new Metrics();
  const seriesOf = (metricName: string): MetricFamily["points"] =>
    metrics.collect().find(({ name }) => name === metricName)?.points ?? [];
  const majorCollections = (): number =>
    seriesOf("v8js.gc.duration")
      .flatMap((point) => ("counts" in point && point.attributes["v8js.gc.type"] === "major" ? point.counts : []))
      .reduce((total, count) => total + count, 0);
  const startMs = performance.now();
  const measured = measureProcess(metrics);
  const bytesIn = (name: string): Map<unknown, number> =>
    new Map(
      seriesOf(`v8js.memory.heap.${name}`).map((point) => [
        point.attributes["v8js.heap.space.name"],
        "value" in point ? point.value : Number.NaN,
      ]),
    );
  const [limits, used] = [bytesIn("limit"), bytesIn("used")];
  for (const space of ["new_space", "old_space", "large_object_space"]) {
    expect(used.get(space)).toBeGreaterThan(0);
    expect(used.get(space)).toBeLessThan(limits.get(space) ?? 0);
  }
  collectGarbage();
  await expect.poll(majorCollections).toBeGreaterThan(0);
  for (const point of seriesOf("v8js.gc.duration"))
    expect("sum" in point && point.sum).toBeLessThan((performance.now() - startMs) / 1_000);
  measured[Symbol.dispose]();
  const before = majorCollections();
  collectGarbage();
  await new Promise(setImmediate);
  expect(majorCollections()).toBe(before);
});

test("histograms use OpenTelemetry's bounds, and for requests three lower ones", () => {
  const metrics = new Metrics();
  using _ = measureProcess(metrics);
  const collections = metrics.collect().find(({ name }) => name === "v8js.gc.duration");
  // opentelemetry.io/docs/specs/semconv/runtime/v8js-metrics and /http/http-metrics.
  expect(collections).toMatchObject({ bounds: [0.001, 0.01, 0.1, 1, 10] });
  const ofRequests = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
  expect(durationBounds).toEqual([0.0005, 0.001, 0.0025, ...ofRequests]);
});

test("event loop delays are reset every 10 s", async () => {
  using started = vi.spyOn(globalThis, "setInterval");
  using cleared = vi.spyOn(globalThis, "clearInterval");
  const metrics = new Metrics();
  const measured = measureProcess(metrics);
  expect(started.mock.calls.map(([, everyMs]) => everyMs)).toEqual([10_000]);
  const timer: unknown = started.mock.results[0]?.value;
  const delays = metrics.collect().find(({ name }) => name === "nodejs.eventloop.delay.p99");
  expect(delays).toMatchObject({ description: "Event loop delay, p99 over the last 10 seconds" });
  const worstS = (): number => {
    started.mock.calls[0]?.[0]();
    const [point] = metrics.collect().find(({ name }) => name === "nodejs.eventloop.delay.max")?.points ?? [];
    return point !== undefined && "value" in point ? point.value : Number.NaN;
  };
  // The histogram starts in the first event loop turn.
  await new Promise((resolve) => setTimeout(resolve, 15));
  for (const beganMs = performance.now(); performance.now() - beganMs < 60;);
  await new Promise((resolve) => setTimeout(resolve, 15));
  const first = worstS();
  expect(first).toBeGreaterThan(0.04);
  expect(worstS()).toBeLessThan(first);
  measured[Symbol.dispose]();
  expect(cleared.mock.calls).toEqual([[timer]]);
});

test("readDelays subtracts the sampling interval, 10 ms, from the delays", () => {
  const histogram = createHistogram();
  const samples = [
    [900, 9],
    [95, 50],
    [5, 1_010],
  ] as const;
  for (const [times, ms] of samples) for (let time = 0; time < times; time++) histogram.record(ms * 1e6);
  const { p50, p99, max } = readDelays(histogram);
  // The histogram has a precision of three digits.
  expect([p50, p99.toFixed(3), max.toFixed(2)]).toEqual([0, "0.040", "1.00"]);
});
