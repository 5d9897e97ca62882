import { context, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { createContextValues } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { createTracing, traceIdsOf } from "../../src/opentelemetry/index.ts";
import { exchange, rpcRequest, startGreenhouse, waterBedProcedure, wireFormats } from "@protoport/testing";
import { registerSdk } from "../../../testing/src/telemetry/register-sdk.ts";

const traceId = "0af7651916cd43dd8448eb211c80319c";
const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-01`, baggage: "shelf=3" };
type Values = ReturnType<typeof createContextValues>;

// oxfmt-ignore
const admitRequest = { procedure: undefined, descriptor: undefined, protocol: "rest", httpMethod: "GET", path: "/",
  httpRoute: undefined, isMounted: false, authorization: null, xRequestId: null, stream: false,
  peer: { address: "127.0.0.1", port: 1 }, origin: "http://127.0.0.1", connection: {},
  addResponseHeader: () => {} } as const;

test.each<[name: string, request: () => Parameters<typeof exchange>[2], want: object]>(
  // oxfmt-ignore
  [
    ["a REST call", () => ({ httpMethod: "GET", path: "/sensors/secret-7/reading", header: [] }),
      { name: "GET /sensors/{sensor}/reading", attributes: { "http.response.status_code": 200 } }],
    ["a request to an unknown path", () => ({ httpMethod: "GET", path: "/secret", header: [] }),
      { name: "GET", attributes: { "http.response.status_code": 404 }, status: { code: SpanStatusCode.UNSET } }],
    ["a request with an unknown HTTP method",
      () => ({ httpMethod: "SECRET", path: "/sensors/1/reading", header: [] }),
      { name: "HTTP", attributes: { "http.request.method": "_OTHER" } }],
    ["a call of an unknown RPC",
      () => rpcRequest(wireFormats["grpc-web"], new Uint8Array(0), [], "/secret.Service/Method"),
      { name: "grpc", attributes: { "rpc.method": "_OTHER" }, status: { code: SpanStatusCode.ERROR } }],
    ["a failed call", () => rpcRequest(wireFormats["connect-json"], Buffer.from("{}"), [], waterBedProcedure),
      { attributes: { "rpc.response.status_code": "unimplemented", "error.type": "unimplemented" },
        status: { code: SpanStatusCode.ERROR } }],
    ["a request with a malformed traceparent",
      () => ({ httpMethod: "GET", path: "/secret", header: [["traceparent", `00-${traceId}-0-01`]] }), {}],
  ],
)("a span of %s has the expected name, attributes and status", async (_name, request, want) => {
  using sdk = registerSdk();
  const { onRequest, interceptor, onResponse } = createTracing({ anonymous: true });
  const hooks = { onRequest, interceptors: [interceptor], onResponse };
  await using greenhouse = await startGreenhouse({ getReading: () => ({}) }, hooks);
  for (const version of ["1.1", "2"] as const) await exchange(greenhouse.address, version, request());
  await expect.poll(() => sdk.spans.length).toBe(2);
  for (const span of sdk.spans) {
    expect(span).toMatchObject({ ...want, kind: SpanKind.SERVER, parentSpanContext: undefined });
    expect(span.spanContext().traceId).not.toBe(traceId);
  }
  const exported = sdk.spans.map(({ name, attributes, status }) => ({ name, attributes, status }));
  expect(JSON.stringify(exported).toLowerCase()).not.toContain("secret");
});

test("a span of an unsampled caller is not recorded, but continues the trace", async () => {
  using sdk = registerSdk();
  const tracing = createTracing();
  const contexts: unknown[] = [];
  await using greenhouse = await startGreenhouse(
    {
      waterBed: (_, { values }) => {
        contexts.push(trace.getActiveSpan()?.spanContext(), traceIdsOf(values));
        trace.getTracer("application").startSpan("of the handler").end();
        return {};
      },
    },
    { onRequest: tracing.onRequest, interceptors: [tracing.interceptor], onResponse: tracing.onResponse },
  );
  const header = [["traceparent", `00-${traceId}-b7ad6b7169203331-00`]] as const;
  const request = rpcRequest(wireFormats["connect-json"], Buffer.from("{}"), header, waterBedProcedure);
  await exchange(greenhouse.address, "2", request);
  const spanId = expect.stringMatching(/^[0-9a-f]{16}$/);
  const own = { traceId, spanId, traceFlags: 0, traceState: undefined };
  expect(contexts).toEqual([own, { traceId, spanId }]);
  expect(sdk.spans).toEqual([]);
});

test("a span is available in admit only with an SDK", async () => {
  const contexts: unknown[] = [];
  const call = async (): Promise<void> => {
    const tracing = createTracing();
    await using greenhouse = await startGreenhouse(
      { waterBed: () => ({}) },
      { onRequest: tracing.onRequest, admit: ({ contextValues }) => void contexts.push(traceIdsOf(contextValues)) },
    );
    const header = [["traceparent", headers.traceparent]] as const;
    const request = rpcRequest(wireFormats["connect-json"], Buffer.from("{}"), header, waterBedProcedure);
    await exchange(greenhouse.address, "2", request);
  };
  await call();
  {
    using _ = registerSdk();
    await call();
  }
  expect(contexts).toEqual([undefined, { traceId, spanId: expect.stringMatching(/^[0-9a-f]{16}$/) }]);
});

test("a span is not a child of another request's active span", () => {
  using _ = registerSdk();
  const contextValues = createContextValues();
  const other = trace.getTracer("application").startSpan("of another request");
  context.with(trace.setSpan(ROOT_CONTEXT, other), () =>
    createTracing().onRequest({ ...admitRequest, header: { get: () => null }, contextValues }),
  );
  expect(traceIdsOf(contextValues)?.traceId).not.toBe(other.spanContext().traceId);
});

describe("startShared", () => {
  function beginRequests(sampled: readonly boolean[]): {
    tracing: ReturnType<typeof createTracing>;
    requests: Values[];
  } {
    const tracing = createTracing();
    const requests = sampled.map((isSampled, i) => {
      const contextValues = createContextValues();
      const parent = `00-${traceId}-000000000000000${i + 1}-0${Number(isSampled)}`;
      const header = { get: (name: string) => (name === "traceparent" ? parent : null) };
      tracing.onRequest({ ...admitRequest, header, contextValues });
      return contextValues;
    });
    return { tracing, requests };
  }

  test.each<[name: string, error: unknown, status: SpanStatusCode, attributes: object]>([
    ["succeeds", undefined, SpanStatusCode.UNSET, { batch: 2 }],
    ["fails", new Error("no"), SpanStatusCode.ERROR, { batch: 2, "error.type": "_OTHER" }],
  ])("creates a span that links all recorded requests if work %s", (_name, error, status, attributes) => {
    using sdk = registerSdk();
    const { tracing, requests } = beginRequests([false, true, true]);
    tracing.startShared({ name: "work", attributes: { batch: 2 }, requests: [undefined, ...requests] })(error);
    const recorded = requests.slice(1).map((values) => traceIdsOf(values));
    const [span] = sdk.spans;
    expect(sdk.spans.length).toBe(1);
    expect(span).toMatchObject({ name: "work", kind: SpanKind.CLIENT, status: { code: status }, attributes });
    expect(span?.parentSpanContext).toMatchObject(recorded[0] ?? {});
    expect(span?.links.map((link) => link.context)).toMatchObject(recorded);
    expect(span?.spanContext().spanId).not.toBe(recorded[0]?.spanId);
  });

  test("creates no span if no request is recorded", () => {
    using sdk = registerSdk();
    const { tracing, requests } = beginRequests([false, false]);
    tracing.startShared({ name: "work", attributes: {}, requests })();
    expect(sdk.spans).toEqual([]);
  });

  test("creates at most 128 links in a span", () => {
    using sdk = registerSdk();
    const { tracing, requests } = beginRequests([true]);
    tracing.startShared({ name: "work", attributes: {}, requests: Array(200).fill(requests[0]) })();
    expect(sdk.spans[0]?.links.length).toBe(128);
  });
});
