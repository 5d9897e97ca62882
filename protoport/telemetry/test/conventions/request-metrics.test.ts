import { expect, test } from "vitest";
import { Code, ConnectError, createContextValues } from "@connectrpc/connect";
import { type CompletedRequest, createGateway } from "../../../gateway/src/index.ts";
import { type Attributes, createRequestMetrics, Metrics } from "../../src/metrics/index.ts";

// oxfmt-ignore
const baseRequest: CompletedRequest = { procedure: undefined, protocol: "rest", httpMethod: "DELETE", path: "/",
  httpRoute: undefined, httpVersion: "1.1", scheme: "http", httpStatus: 200, error: undefined, durationMs: 1_000,
  contextValues: createContextValues(), peer: { address: "127.0.0.1", port: 1 } };

test("createRequestMetrics without refusalOf creates no refusal counter", async () => {
  const metrics = new Metrics();
  const gateway = createGateway({ routes: () => undefined, onResponse: createRequestMetrics(metrics) });
  const { port } = await gateway.listen();
  await fetch(`http://127.0.0.1:${port}/nothing`, { headers: { connection: "close" } });
  await gateway.close();
  const counts = metrics.collect().map(({ name, points }) => `${name} ${points.length}`);
  expect(counts).toEqual(["rpc.server.call.duration 0", "http.server.request.duration 1"]);
});

test.each<{ metric: string; requests: readonly Partial<CompletedRequest>[] }>(
  // oxfmt-ignore
  [
    { metric: "http.server.request.duration",
      requests: [{ httpRoute: "/sensors/{id}" }, { httpRoute: "/beds/{id}" }, { httpRoute: undefined }] },
    { metric: "rpc.server.call.duration",
      requests: [{ protocol: "grpc", procedure: "/garden.Service/Water" }, { protocol: "grpc",
        procedure: "/garden.Service/Prune" }, { protocol: "grpc", procedure: undefined }] },
  ],
)("$metric has one series for each route or method", ({ metric, requests }) => {
  const metrics = new Metrics();
  const record = createRequestMetrics(metrics);
  for (const request of [...requests, ...requests]) record({ ...baseRequest, ...request });
  const family = metrics.collect().find(({ name }) => name === metric);
  expect(family?.points).toEqual(requests.map(() => expect.objectContaining({ sum: 2 })));
});

test("a refusal is counted by its kind and as a request", () => {
  const metrics = new Metrics();
  const record = createRequestMetrics(metrics, { refusalOf: ({ path }) => (path === "/" ? undefined : path) });
  const error = new ConnectError("", Code.PermissionDenied);
  for (const request of [{ path: "a", error }, { path: "a", error }, { path: "b", error }, { path: "b" }, { error }])
    record({ ...baseRequest, ...request });
  const points = new Map(metrics.collect().map(({ name, points: all }) => [name, all]));
  expect(points.get("gateway.refusals")).toEqual([
    { attributes: { kind: "a" }, value: 2 },
    { attributes: { kind: "b" }, value: 1 },
  ]);
  const requests = points.get("http.server.request.duration") ?? [];
  expect(requests.reduce((total, point) => total + ("sum" in point ? point.sum : 0), 0)).toBe(5);
});

test("each series is created once for equal attributes", () => {
  const created: unknown[] = [];
  const instrument = {
    with: (attributes: Attributes) => {
      created.push(attributes["http.route"]);
      return { record: () => undefined, add: () => undefined };
    },
  };
  const record = createRequestMetrics({ histogram: () => instrument, counter: () => instrument });
  for (const httpRoute of ["/a", "/b", "/a"]) record({ ...baseRequest, httpRoute });
  expect(created).toEqual(["/a", "/b"]);
});
