import { expect, test } from "vitest";
import { measureFiles, measureGateway, measureReadiness } from "../../src/metrics/gateway-metrics.ts";
import type { MeasuredGateway, MeasuredReadiness } from "../../src/metrics/gateway-metrics.ts";
import { Metrics } from "../../src/metrics/metrics.ts";
import { measureProcess } from "../../src/metrics/process-metrics.ts";

const load: MeasuredGateway["load"] = {
  connections: { http1: 1, http2: 2 },
  requests: { http1: 3, http2: 4 },
  backlogBytes: 5,
  badRequests: new Map([[400, 6]]),
  http2Errors: { connection: new Map([["PROTOCOL_ERROR", 7]]), stream: new Map([["CANCEL", 8]]) },
};

const version = (value: string): object => ({ "network.protocol.version": value });

/** Returns each family as a line, in export order. */
const familiesOf = (metrics: Metrics): string[] =>
  metrics.collect().map(({ kind, name, unit }) => `${kind} ${name} ${unit}`);

test("measureGateway exports load, bad requests and HTTP/2 errors", () => {
  const metrics = new Metrics();
  measureGateway(metrics, { load });
  // oxfmt-ignore
  expect(metrics.collect().map(({ kind, name, unit, points }) => [kind, name, unit, points])).toEqual([
    ["gauge", "gateway.connections", "{connection}", series([version("1.1"), 1], [version("2"), 2])],
    ["gauge", "gateway.requests.active", "{request}", series([version("1.1"), 3], [version("2"), 4])],
    ["gauge", "gateway.backlog", "By", series([{}, 5])],
    ["counter", "gateway.bad_requests", "{request}", series([{ "http.response.status_code": 400 }, 6])],
    ["counter", "gateway.http2.errors", "{error}",
      series([{ scope: "connection", code: "PROTOCOL_ERROR" }, 7], [{ scope: "stream", code: "CANCEL" }, 8])],
  ]);
  expect(new Set(metrics.collect().map(({ description }) => description)).size).toBe(5);
});

test("measureFiles exports the success and time of each file's last reload", () => {
  const metrics = new Metrics();
  const first = { path: "/a", problem: undefined, lastSuccessMs: 2_500 };
  measureFiles(metrics, [first, { path: "/b, /c", problem: "it is empty", lastSuccessMs: 1_000 }]);
  const [a, b] = [{ "file.path": "/a" }, { "file.path": "/b, /c" }];
  expect(metrics.collect().map(({ kind, name, unit, points }) => [kind, name, unit, points])).toEqual([
    ["gauge", "gateway.file.reload.successful", "", series([a, 1], [b, 0])],
    ["gauge", "gateway.file.reload.last_success", "s", series([a, 2.5], [b, 1])],
  ]);
});

function series(...all: readonly [attributes: object, value: number][]): object[] {
  return all.map(([attributes, value]) => ({ attributes, value }));
}

test.each([
  { name: "ready", obstacles: [], aborted: false, want: [1, 0] },
  { name: "not ready", obstacles: ["the store is down"], aborted: false, want: [0, 0] },
  { name: "draining", obstacles: ["the server is stopping"], aborted: true, want: [0, 1] },
])("a server that is $name reports $want as gateway.ready and gateway.draining", ({ obstacles, aborted, want }) => {
  const metrics = new Metrics();
  const draining = aborted ? AbortSignal.abort() : new AbortController().signal;
  const readiness: MeasuredReadiness = { draining, obstacles: () => obstacles };
  measureReadiness(metrics, readiness);
  expect(familiesOf(metrics)).toEqual(["gauge gateway.ready ", "gauge gateway.draining "]);
  expect(metrics.collect().map((family) => family.points)).toEqual(want.map((value) => series([{}, value])));
});

test("measureProcess exports ten metrics, each with a description", () => {
  const metrics = new Metrics();
  using _ = measureProcess(metrics);
  // oxfmt-ignore
  expect(familiesOf(metrics)).toEqual(["counter process.cpu.time s", "gauge process.memory.usage By",
    "gauge process.uptime s", "counter nodejs.eventloop.time s", "gauge v8js.memory.heap.limit By",
    "gauge v8js.memory.heap.used By", "histogram v8js.gc.duration s", "gauge nodejs.eventloop.delay.p50 s",
    "gauge nodejs.eventloop.delay.p99 s", "gauge nodejs.eventloop.delay.max s"]);
  const descriptions = metrics.collect().map(({ description }) => description);
  expect(new Set(descriptions).size).toBe(descriptions.length);
  for (const description of descriptions) expect(description).toMatch(/^[A-Z].* .*[^.]$/);
});
