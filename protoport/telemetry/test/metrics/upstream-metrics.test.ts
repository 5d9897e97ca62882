import { Code, createContextValues } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { durationBounds } from "../../src/conventions/index.ts";
import { Metrics } from "../../src/metrics/metrics.ts";
import { measureDescriptors, measureUpstreams } from "../../src/metrics/upstream-metrics.ts";

test("measureUpstreams exports connections, requests and refusals per upstream", () => {
  const metrics = new Metrics();
  const refusals = { queue_full: 4, queue_timeout: 5 };
  const idle = { connections: 0, calls: 0, waitingCalls: 0, refusals: {} };
  measureUpstreams(metrics, [
    { name: "dns:a:1", upstream: { name: "a:1", load: { connections: 1, calls: 2, waitingCalls: 3, refusals } } },
    { name: "unix:/b", upstream: { name: "localhost", load: idle } },
  ]);
  const both = (value: number): object[] => series([{ upstream: "dns:a:1" }, value], [{ upstream: "unix:/b" }, 0]);
  // oxfmt-ignore
  expect(metrics.collect().map(({ kind, name, unit, points }) => [kind, name, unit, points])).toEqual([
    ["gauge", "gateway.upstream.connections", "{connection}", both(1)],
    ["gauge", "gateway.upstream.requests.active", "{request}", both(2)],
    ["gauge", "gateway.upstream.requests.waiting", "{request}", both(3)],
    ["counter", "gateway.upstream.refusals", "{request}",
      series([{ upstream: "dns:a:1", reason: "queue_full" }, 4], [{ upstream: "dns:a:1", reason: "queue_timeout" },
        5])],
    ["histogram", "rpc.client.call.duration", "s", []],
    ["histogram", "gateway.upstream.queue.duration", "s", []],
    ["counter", "gateway.upstream.retries", "{attempt}", []],
  ]);
});

test("a call is counted for the upstream that it started with", () => {
  const metrics = new Metrics();
  const load = { connections: 0, calls: 0, waitingCalls: 0, refusals: {} };
  const [before, after] = ["dns:a:1", "dns:a:1#2"].map((name) => ({ name, upstream: { name: "a:1", load } }));
  if (before === undefined || after === undefined) throw new Error("no upstreams");
  const measured = [before];
  const observe = measureUpstreams(metrics, measured);
  const call = { method: GreenhouseService.method.getReading, contextValues: createContextValues() };
  const endings = [observe({ ...call, upstream: before.upstream })];
  measured.splice(0, 1, after);
  // A call that began before the replacement may send another attempt afterwards.
  endings.push(observe({ ...call, upstream: before.upstream }), observe({ ...call, upstream: after.upstream }));
  for (const end of endings) end({ error: undefined, durationMs: 20, queuedMs: 0, retries: 1 });
  const retries = metrics.collect().find(({ name }) => name === "gateway.upstream.retries");
  expect(retries?.points).toMatchObject(series([{ upstream: before.name }, 2], [{ upstream: after.name }, 1]));
});

test("calls to a renamed upstream are counted under its new name", () => {
  const metrics = new Metrics();
  const upstream = { name: "a:1", load: { connections: 0, calls: 0, waitingCalls: 0, refusals: {} } };
  const measured = [{ name: "dns:a:1#2", upstream }];
  const observe = measureUpstreams(metrics, measured);
  const call = { upstream, method: GreenhouseService.method.getReading, contextValues: createContextValues() };
  const end = { error: undefined, durationMs: 20, queuedMs: 5, retries: 1 };
  observe(call)(end);
  measured.splice(0, 1, { name: "dns:a:1", upstream });
  observe(call)(end);
  const counted = metrics.collect().filter(({ kind, points }) => kind !== "gauge" && points.length > 0);
  const upstreams = counted.map(({ points }) => points.map(({ attributes }) => attributes["upstream"]));
  expect(upstreams).toEqual(Array.from({ length: 3 }, () => ["dns:a:1#2", "dns:a:1"]));
});

test("a moved upstream is counted under its new name, not its successor's", () => {
  const metrics = new Metrics();
  const load = { connections: 0, calls: 0, waitingCalls: 0, refusals: {} };
  const [moved, other] = [
    { name: "a:1", load },
    { name: "b:1", load },
  ];
  const measured = [
    { name: "first", upstream: moved },
    { name: "second", upstream: other },
  ];
  const observe = measureUpstreams(metrics, measured);
  const call = { upstream: moved, method: GreenhouseService.method.getReading, contextValues: createContextValues() };
  const end = { error: undefined, durationMs: 20, queuedMs: 0, retries: 1 };
  observe(call)(end);
  measured.splice(0, 2, { name: "first", upstream: other }, { name: "third", upstream: moved });
  observe(call)(end);
  const retries = metrics.collect().find(({ name }) => name === "gateway.upstream.retries");
  expect(retries?.points).toEqual(series([{ upstream: "first" }, 1], [{ upstream: "third" }, 1]));
});

test("measureDescriptors exports descriptor reloads and conflicts per upstream", () => {
  const metrics = new Metrics();
  const descriptorReloads = [
    { problem: undefined, lastSuccessMs: 2_500, successes: 3, failures: 1, conflicts: [] },
    { problem: "it is down", lastSuccessMs: 1_000, successes: 1, failures: 2, conflicts: ["a", "b"] },
    { problem: "it was never up", lastSuccessMs: undefined, successes: 0, failures: 4, conflicts: [] },
  ];
  measureDescriptors(metrics, ["dns:a:1", "unix:/b", "unix:/c"], { descriptorReloads });
  const [a, b, c] = [{ upstream: "dns:a:1" }, { upstream: "unix:/b" }, { upstream: "unix:/c" }];
  // oxfmt-ignore
  expect(metrics.collect().map(({ kind, name, unit, points }) => [kind, name, unit, points])).toEqual([
    ["gauge", "gateway.descriptors.reload.successful", "", series([a, 1], [b, 0], [c, 0])],
    ["gauge", "gateway.descriptors.reload.last_success", "s", series([a, 2.5], [b, 1])],
    ["counter", "gateway.descriptors.reloads", "{reload}",
      series([{ ...a, result: "success" }, 3], [{ ...a, result: "failure" }, 1], [{ ...b, result: "success" }, 1],
        [{ ...b, result: "failure" }, 2], [{ ...c, result: "success" }, 0], [{ ...c, result: "failure" }, 4])],
    ["gauge", "gateway.descriptors.conflicts", "{conflict}", series([a, 0], [b, 2], [c, 0])],
  ]);
});

test("measureUpstreams records call durations, queue times and retries", () => {
  const metrics = new Metrics();
  const load = { connections: 0, calls: 0, waitingCalls: 0, refusals: {} };
  const measured = { name: "dns:a:1", upstream: { name: "a:1", load } };
  const observe = measureUpstreams(metrics, [measured]);
  const { getReading, waterBed } = GreenhouseService.method;
  const record = (method: typeof getReading | typeof waterBed, code?: Code, queuedMs = 0, retries = 0): void => {
    const onEnd = observe({ upstream: measured.upstream, method, contextValues: createContextValues() });
    onEnd({ error: code === undefined ? undefined : { code }, durationMs: 20, queuedMs, retries });
  };
  record(getReading);
  record(getReading);
  record(getReading, Code.Canceled);
  for (const name of ["gateway.upstream.queue.duration", "gateway.upstream.retries"])
    expect(metrics.collect().find((family) => family.name === name)?.points).toEqual([]);
  record(waterBed, Code.Unavailable, 4, 2);
  const families = new Map(metrics.collect().map(({ name, points }) => [name, points]));
  const rpc = { upstream: "dns:a:1", "rpc.system.name": "grpc" };
  const [reading, watering] = ["GetReading", "WaterBed"].map((name) => `${GreenhouseService.typeName}/${name}`);
  expect(families.get("rpc.client.call.duration")).toMatchObject([
    { attributes: { ...rpc, "rpc.method": reading, "rpc.response.status_code": "OK" }, sum: 0.04 },
    { attributes: { ...rpc, "rpc.method": reading, ...failed("CANCELLED") }, sum: 0.02 },
    { attributes: { ...rpc, "rpc.method": watering, ...failed("UNAVAILABLE") }, sum: 0.02 },
  ]);
  const counts = [...durationBounds.map((bound) => Number(bound === 0.005)), 0];
  const want = [{ attributes: { upstream: "dns:a:1" }, counts, sum: 0.004 }];
  expect(families.get("gateway.upstream.queue.duration")).toMatchObject(want);
  expect(families.get("gateway.upstream.retries")).toEqual(series([{ upstream: "dns:a:1" }, 2]));
});

function series(...all: readonly [attributes: object, value: number][]): object[] {
  return all.map(([attributes, value]) => ({ attributes, value }));
}

const failed = (status: string): object => ({ "rpc.response.status_code": status, "error.type": status });
