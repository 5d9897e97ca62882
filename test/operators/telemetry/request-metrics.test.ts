import { expect, test } from "vitest";
import { createGateway } from "../../../src/gateway/index.ts";
import { createRequestMetrics, Metrics } from "../../../src/operators/telemetry/index.ts";

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
