import { expect, test } from "vitest";
import { Code, ConnectError, createContextValues } from "@connectrpc/connect";
import { type AnsweredRequest, createGateway } from "../../../gateway/src/index.ts";
import { type Attributes, createRequestMetrics, Metrics } from "../../src/metrics/index.ts";

const answered: AnsweredRequest = {
  procedure: undefined,
  protocol: "rest",
  httpMethod: "DELETE",
  path: "/",
  httpRoute: undefined,
  httpVersion: "1.1",
  scheme: "http",
  httpStatus: 200,
  error: undefined,
  durationMs: 1_000,
  contextValues: createContextValues(),
  peer: { address: "127.0.0.1", port: 1 },
};

test("a program that names no refusals has its requests counted, and no metric of refusals", async () => {
  const metrics = new Metrics();
  const gateway = createGateway({ routes: () => undefined, onAnswer: createRequestMetrics(metrics) });
  const { port } = await gateway.listen();
  await fetch(`http://127.0.0.1:${port}/nothing`, { headers: { connection: "close" } });
  await gateway.close();
  expect(metrics.collect().map(({ name, points }) => [name, points.length])).toEqual([
    ["rpc.server.call.duration", 0],
    ["http.server.request.duration", 1],
  ]);
});

test.each<{ metric: string; answers: readonly Partial<AnsweredRequest>[] }>([
  {
    metric: "http.server.request.duration",
    answers: [{ httpRoute: "/sensors/{id}" }, { httpRoute: "/beds/{id}" }, { httpRoute: undefined }],
  },
  {
    metric: "rpc.server.call.duration",
    answers: [
      { protocol: "grpc", procedure: "/garden.Service/Water" },
      { protocol: "grpc", procedure: "/garden.Service/Prune" },
      { protocol: "grpc", procedure: undefined },
    ],
  },
])("$metric has one series for each route or method, and counts each answer in its own", ({ metric, answers }) => {
  const metrics = new Metrics();
  const count = createRequestMetrics(metrics);
  for (const answer of [...answers, ...answers]) count({ ...answered, ...answer });
  const family = metrics.collect().find(({ name }) => name === metric);
  expect(family?.points).toEqual(answers.map(() => expect.objectContaining({ sum: 2 })));
});

test("refusals are counted by their kind, and as the requests that they are", () => {
  const metrics = new Metrics();
  const count = createRequestMetrics(metrics, { refusalOf: ({ path }) => (path === "/" ? undefined : path) });
  const error = new ConnectError("", Code.PermissionDenied);
  for (const answer of [{ path: "a", error }, { path: "a", error }, { path: "b", error }, { path: "b" }, { error }])
    count({ ...answered, ...answer });
  const points = new Map(metrics.collect().map(({ name, points: all }) => [name, all]));
  expect(points.get("gateway.refusals")).toEqual([
    { attributes: { kind: "a" }, value: 2 },
    { attributes: { kind: "b" }, value: 1 },
  ]);
  const requests = points.get("http.server.request.duration") ?? [];
  expect(requests.reduce((all, point) => all + ("sum" in point ? point.sum : 0), 0)).toBe(5);
});

test("a series is opened once, whatever it is opened in", () => {
  const opened: unknown[] = [];
  const instrument = {
    with: (attributes: Attributes) => {
      opened.push(attributes["http.route"]);
      return { record: () => undefined, add: () => undefined };
    },
  };
  const count = createRequestMetrics({ histogram: () => instrument, counter: () => instrument });
  for (const httpRoute of ["/a", "/b", "/a"]) count({ ...answered, httpRoute });
  expect(opened).toEqual(["/a", "/b"]);
});
