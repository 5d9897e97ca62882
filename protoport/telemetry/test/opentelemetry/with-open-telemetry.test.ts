import { createServer } from "node:http";
import { context, createNoopMeter, metrics, ROOT_CONTEXT, SpanKind, trace } from "@opentelemetry/api";
import type { Meter } from "@opentelemetry/api";
import { DataPointType, type IAttributesProcessor, MeterProvider, MetricReader } from "@opentelemetry/sdk-metrics";
import { type Sampler, SamplingDecision } from "@opentelemetry/sdk-trace";
import { describe, expect, test } from "vitest";
import { createTestGateway } from "../../../testing/src/gateway/test-gateway.ts";
import { withOpenTelemetry } from "../../src/opentelemetry/index.ts";
import { waterBedProcedure } from "../../../testing/src/gateway/greenhouse.ts";
import { exchange, rpcRequest, wireFormats } from "../../../testing/src/gateway/wire-format.ts";
import { type Field, type HttpRequest, startOnLoopback } from "@protoport/testing/http";
import { type RegisteredSdk, registerSdk } from "../../../testing/src/telemetry/register-sdk.ts";
import { caller, reading, startTraced, traceparent } from "../../../testing/src/telemetry/traced-greenhouse.ts";

const wateringOverGrpc = rpcRequest(wireFormats.grpc, new Uint8Array(0), [], waterBedProcedure);

async function spanOf(anonymous: boolean, request: HttpRequest): Promise<RegisteredSdk["spans"][number] | undefined> {
  using sdk = registerSdk();
  const implementation = { getReading: () => ({}), waterBed: () => ({}) };
  await using greenhouse = await startTraced(implementation, { tracing: { anonymous } });
  await exchange(greenhouse.address, "2", request);
  await expect.poll(() => sdk.spans.length).toBe(1);
  return sdk.spans[0];
}

test("the parent span of a mounted gateway is the server's active span", async () => {
  using sdk = registerSdk();
  const tracer = trace.getTracer("server");
  const gateway = createTestGateway(withOpenTelemetry({ routes: () => {} }));
  const ended = tracer.startSpan("ended");
  ended.end();
  for (const span of [tracer.startSpan("recorded"), ended]) {
    const server = createServer((request, response) =>
      context.with(trace.setSpan(ROOT_CONTEXT, span), () => gateway.handler(request, response)),
    );
    await using started = await startOnLoopback(server);
    await exchange(started.address, "1.1", { ...reading, header: [traceparent] });
    await context.with(trace.setSpan(ROOT_CONTEXT, span), () =>
      gateway.fetch(new Request("http://orders.example/", { headers: [[...traceparent]] })),
    );
  }
  const exported = sdk.spans.map((span) => [span.name, SpanKind[span.kind], span.parentSpanContext?.spanId]);
  const [endedSpan, ...ours] = exported;
  expect(endedSpan).toEqual(["ended", "INTERNAL", undefined]);
  const recordedId = ours[0]?.[2];
  expect(recordedId).not.toBe(caller.spanId);
  const internal = ["GET", "INTERNAL", recordedId];
  const server = ["GET", "SERVER", caller.spanId];
  expect(ours).toEqual([internal, internal, server, server]);
});

test("the parent span is not the span that was active during listen", async () => {
  using sdk = registerSdk();
  const startUp = trace.getTracer("application").startSpan("start-up");
  await using greenhouse = await context.with(trace.setSpan(ROOT_CONTEXT, startUp), () =>
    startTraced({ getReading: () => ({}) }),
  );
  await exchange(greenhouse.address, "1.1", reading);
  await exchange(greenhouse.address, "2", reading);
  await expect.poll(() => sdk.spans.map(({ parentSpanContext }) => parentSpanContext)).toEqual([undefined, undefined]);
});

describe("span attributes", () => {
  const connection = {
    "client.address": "127.0.0.1",
    "client.port": expect.any(Number),
    "server.address": "127.0.0.1",
    "server.port": expect.any(Number),
    "user_agent.original": "tests/1",
  };
  const agent: readonly Field[] = [["user-agent", "tests/1"]];

  test.each([
    { name: "REST", request: { ...reading, header: agent }, want: { "url.path": "/sensors/7/reading" } },
    { name: "gRPC", request: { ...wateringOverGrpc, header: [...wateringOverGrpc.header, ...agent] }, want: {} },
  ])("of $name calls include addresses and user agent unless anonymous is set", async ({ request, want }) => {
    const span = await spanOf(false, request);
    const anonymous = await spanOf(true, request);
    expect(span?.attributes).toEqual({ ...anonymous?.attributes, ...connection, ...want });
    const names = Object.keys(anonymous?.attributes ?? {});
    expect(names.filter((key) => /^(client|server|user|url\.path)/.test(key))).toEqual([]);
  });
});

test("a span of a Fetch request has no client address attributes", async () => {
  using sdk = registerSdk();
  await createTestGateway(withOpenTelemetry({ routes: () => {} })).fetch(new Request("http://orders.example/nothing"));
  // oxfmt-ignore
  expect(sdk.spans.map(({ attributes }) => attributes)).toEqual([{ "server.address": "orders.example",
    "url.path": "/nothing", "http.request.method": "GET", "http.response.status_code": 404, "url.scheme": "http" }]);
});

test("a sampler receives the span's final name, or HTTP without a route", async () => {
  const names: string[] = [];
  const shouldSample: Sampler["shouldSample"] = (_, _id, name) => {
    names.push(name);
    return { decision: SamplingDecision.RECORD_AND_SAMPLED };
  };
  using sdk = registerSdk({ sampler: { shouldSample, toString: () => "names" } });
  await using greenhouse = await startTraced({ getReading: () => ({}), waterBed: () => ({}) });
  for (const request of [reading, wateringOverGrpc]) await exchange(greenhouse.address, "2", request);
  await greenhouse.completed(2);
  expect(names).toEqual(["GET /sensors/{sensor}/reading", "greenhouse.v1.GreenhouseService/WaterBed"]);
  expect(sdk.spans.map(({ name }) => name)).toEqual(names);
  await exchange(greenhouse.address, "2", { ...reading, path: "/nothing" });
  expect(names.at(-1)).toBe("HTTP");
});

test("an endpoint with atRoot is served outside the prefix", async () => {
  const endpoint = { path: "/well-known", atRoot: true, open: true, handle: () => ({ httpStatus: 200, body: "" }) };
  const options = { routes: () => {}, requestPathPrefix: "/api", endpoints: [endpoint] };
  const gateway = createTestGateway(withOpenTelemetry(options));
  expect((await gateway.fetch(new Request("http://orders.example/well-known"))).status).toBe(200);
});

test("an endpoint that is a class instance keeps its members", async () => {
  class Page {
    readonly body = "page";
    readonly open = true;
    get path(): string {
      return "/page";
    }
    handle(): { httpStatus: number; body: string } {
      return { httpStatus: 200, body: this.body };
    }
  }
  const gateway = createTestGateway(withOpenTelemetry({ routes: () => {}, endpoints: [new Page()] }));
  expect(await (await gateway.fetch(new Request("http://orders.example/page"))).text()).toBe("page");
});

test("getMeter is called once for several requests", async () => {
  let count = 0;
  using _ = registerSdk();
  const getMeter = (): Meter => ((count += 1), createNoopMeter());
  metrics.setGlobalMeterProvider({ getMeter });
  const gateway = createTestGateway(withOpenTelemetry({ routes: () => {} }));
  for (const path of ["/a", "/b"]) await gateway.fetch(new Request(`http://orders.example${path}`));
  expect(count).toBe(1);
});

class TestReader extends MetricReader {
  protected override async onForceFlush(): Promise<void> {}
  protected override async onShutdown(): Promise<void> {}
}

test("a duration is recorded by the meter provider at the request's end", async () => {
  using sdk = registerSdk();
  const spanIds = new Set<string | undefined>();
  await using greenhouse = await startTraced({ getReading: () => ({}), waterBed: () => ({}) });
  await exchange(greenhouse.address, "1.1", reading);
  await greenhouse.completed(1);
  const reader = new TestReader();
  const recordContext: IAttributesProcessor["process"] = (attributes, active) => {
    spanIds.add(active && trace.getSpan(active)?.spanContext().spanId);
    return attributes;
  };
  const views = [{ instrumentName: "*", attributesProcessors: [{ process: recordContext }] }];
  metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader], views }));
  for (const request of [reading, reading, wateringOverGrpc]) await exchange(greenhouse.address, "2", request);
  await greenhouse.completed(4);
  expect([...spanIds]).toEqual(sdk.spans.slice(1).map((span) => span.spanContext().spanId));
  const { resourceMetrics } = await reader.collect();
  const exported = resourceMetrics.scopeMetrics.flatMap(({ scope, metrics: scopeMetrics }) =>
    scopeMetrics.map((metric) => {
      const points = metric.dataPointType === DataPointType.HISTOGRAM ? metric.dataPoints : [];
      const { name, unit, description } = metric.descriptor;
      const counts = points.map(({ attributes, value: { count, sum = 10 } }) => ({ attributes, count, sum: sum < 10 }));
      return { scope: scope.name, name, unit, description, counts, lowest: points[0]?.value.buckets.boundaries[0] };
    }),
  );
  const scope = "@protoport/gateway";
  // oxfmt-ignore
  expect(exported).toEqual([
    { scope, name: "rpc.server.call.duration", unit: "s",
      description: "Duration of calls over gRPC, gRPC-Web and Connect", lowest: 0.0005,
      counts: [{ attributes: { "rpc.system.name": "grpc", "rpc.method": "greenhouse.v1.GreenhouseService/WaterBed",
          "rpc.response.status_code": "OK" }, count: 1, sum: true }] },
    { scope, name: "http.server.request.duration", unit: "s",
      description: "Duration of REST calls and other HTTP requests", lowest: 0.0005,
      counts: [{ attributes: { "http.request.method": "GET", "http.route": "/sensors/{sensor}/reading",
          "http.response.status_code": 200, "network.protocol.version": "2", "url.scheme": "http" }, count: 2,
        sum: true }] },
  ]);
});
