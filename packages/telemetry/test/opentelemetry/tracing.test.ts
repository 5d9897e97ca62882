import { setImmediate as nextTurn } from "node:timers/promises";
import { context, propagation, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { createContextValues, type Interceptor } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { createTracing, traceIdsOf } from "../../src/opentelemetry/index.ts";
import {
  callings,
  greenhouseClient,
  startGreenhouse,
  waterBedProcedure,
} from "../../../testing/src/gateway/greenhouse.ts";
import { exchange, rpcRequest, wireFormats } from "../../../testing/src/gateway/wire-format.ts";
import { registerSdk } from "../../../testing/src/telemetry/register-sdk.ts";

const traceId = "0af7651916cd43dd8448eb211c80319c";
const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-01`, baggage: "shelf=3" };

describe.each(callings)("over $name, a span is active", (calling) => {
  test("in interceptors and handlers of every kind of RPC, also after they have waited", async () => {
    using sdk = registerSdk();
    const tracing = createTracing();
    const seen: string[] = [];
    const look = (): void => {
      const active = trace.getActiveSpan()?.spanContext();
      const shelf = propagation.getActiveBaggage()?.getEntry("shelf")?.value;
      seen.push(`${active?.traceId} ${active?.spanId} ${shelf}`);
    };
    const watching: Interceptor = (next) => async (request) => {
      look();
      await nextTurn();
      const response = await next(request);
      look();
      return response;
    };
    const ofProgram = trace.getTracer("program");
    await using greenhouse = await startGreenhouse(
      {
        waterBed: async () => {
          look();
          await nextTurn();
          look();
          ofProgram.startSpan("of the handler").end();
          return {};
        },
        async *watchReadings() {
          look();
          yield {};
          await nextTurn();
          look();
          ofProgram.startSpan("of the handler").end();
          yield {};
        },
      },
      {
        onRequest: tracing.onRequest,
        interceptors: [tracing.interceptor, watching],
        onAnswer: (answer) => {
          tracing.onAnswer(answer);
          done.shift()?.();
        },
      },
      calling.listen,
    );
    const done: (() => void)[] = [];
    const answered = (): Promise<void> => new Promise((resolve) => done.push(resolve));
    const client = greenhouseClient(calling, greenhouse.address);
    const calls: { name: string; call: () => Promise<unknown> }[] = [
      { name: "WaterBed", call: () => client.waterBed({}, { headers }) },
      {
        name: "WatchReadings",
        call: async () => {
          for await (const _ of client.watchReadings({}, { headers })) continue;
        },
      },
    ];
    for (const { name, call } of calls) {
      const end = answered();
      seen.length = 0;
      await call();
      await end;
      const [inner, outer] = sdk.spans.slice(-2);
      expect(seen.length).toBeGreaterThan(3);
      expect(new Set(seen)).toEqual(new Set([`${traceId} ${outer?.spanContext().spanId} 3`]));
      expect(outer).toMatchObject({
        name: `greenhouse.v1.GreenhouseService/${name}`,
        kind: SpanKind.SERVER,
        parentSpanContext: { traceId, spanId: "b7ad6b7169203331" },
      });
      expect(inner).toMatchObject({ name: "of the handler", parentSpanContext: outer?.spanContext() });
    }
    expect(trace.getActiveSpan()).toBe(undefined);
  });
});

type Values = ReturnType<typeof createContextValues>;

const admitRequest = {
  procedure: undefined,
  protocol: "rest",
  httpMethod: "GET",
  httpRoute: undefined,
  isMounted: false,
  authorization: null,
  xRequestId: null,
  stream: false,
  peer: { address: "127.0.0.1", port: 1 },
  origin: "http://127.0.0.1",
  connection: {},
  addToAnswer: () => {},
} as const;

describe("a span", () => {
  test.each<{ name: string; request: () => Parameters<typeof exchange>[2]; want: object }>([
    {
      name: "of REST has the route, never the path",
      request: () => ({ httpMethod: "GET", path: "/sensors/secret-7/reading", header: [] }),
      want: { name: "GET /sensors/{sensor}/reading", attributes: { "http.response.status_code": 200 } },
    },
    {
      name: "of what is not there has the method alone",
      request: () => ({ httpMethod: "GET", path: "/secret", header: [] }),
      want: { name: "GET", attributes: { "http.response.status_code": 404 }, status: { code: SpanStatusCode.UNSET } },
    },
    {
      name: "of a method that HTTP does not know says HTTP",
      request: () => ({ httpMethod: "SECRET", path: "/sensors/1/reading", header: [] }),
      want: { name: "HTTP", attributes: { "http.request.method": "_OTHER" } },
    },
    {
      name: "of an RPC that is not served has the name of the system",
      request: () => rpcRequest(wireFormats["grpc-web"], new Uint8Array(0), [], "/secret.Service/Method"),
      want: { name: "grpc", attributes: { "rpc.method": "_OTHER" }, status: { code: SpanStatusCode.ERROR } },
    },
    {
      name: "of a call that fails says so",
      request: () => rpcRequest(wireFormats["connect-json"], Buffer.from("{}"), [], waterBedProcedure),
      want: {
        attributes: { "rpc.response.status_code": "unimplemented", "error.type": "unimplemented" },
        status: { code: SpanStatusCode.ERROR },
      },
    },
    {
      name: "below a malformed parent begins a trace of its own",
      request: () => ({ httpMethod: "GET", path: "/secret", header: [["traceparent", `00-${traceId}-0-01`]] }),
      want: {},
    },
  ])("$name", async ({ request, want }) => {
    using sdk = registerSdk();
    const tracing = createTracing({ anonymous: true });
    await using greenhouse = await startGreenhouse(
      { getReading: () => ({}) },
      { onRequest: tracing.onRequest, interceptors: [tracing.interceptor], onAnswer: tracing.onAnswer },
    );
    for (const version of ["1.1", "2"] as const) await exchange(greenhouse.address, version, request());
    await expect.poll(() => sdk.spans.length).toBe(2);
    for (const span of sdk.spans) {
      expect(span).toMatchObject({ ...want, kind: SpanKind.SERVER, parentSpanContext: undefined });
      expect(span.spanContext().traceId).not.toBe(traceId);
    }
    const told = sdk.spans.map(({ name, attributes, status }) => ({ name, attributes, status }));
    expect(JSON.stringify(told).toLowerCase()).not.toContain("secret");
  });

  test("is not made where the caller's is not recorded, and the trace goes on", async () => {
    using sdk = registerSdk();
    const tracing = createTracing();
    const seen: unknown[] = [];
    await using greenhouse = await startGreenhouse(
      {
        waterBed: (_, { values }) => {
          seen.push(trace.getActiveSpan()?.spanContext(), traceIdsOf(values));
          trace.getTracer("program").startSpan("of the handler").end();
          return {};
        },
      },
      { onRequest: tracing.onRequest, interceptors: [tracing.interceptor], onAnswer: tracing.onAnswer },
    );
    const header = [["traceparent", `00-${traceId}-b7ad6b7169203331-00`]] as const;
    await exchange(
      greenhouse.address,
      "2",
      rpcRequest(wireFormats["connect-json"], Buffer.from("{}"), header, waterBedProcedure),
    );
    const spanId = expect.stringMatching(/^[0-9a-f]{16}$/);
    expect(seen).toEqual([
      { traceId, spanId, traceFlags: 0, traceState: undefined },
      { traceId, spanId },
    ]);
    expect(sdk.spans).toEqual([]);
  });

  test("is known before a request is admitted, and is in no trace without an SDK", async () => {
    const seen: unknown[] = [];
    const call = async (): Promise<void> => {
      const tracing = createTracing();
      await using greenhouse = await startGreenhouse(
        { waterBed: () => ({}) },
        { onRequest: tracing.onRequest, admit: ({ contextValues }) => void seen.push(traceIdsOf(contextValues)) },
      );
      const header = [["traceparent", headers.traceparent]] as const;
      await exchange(
        greenhouse.address,
        "2",
        rpcRequest(wireFormats["connect-json"], Buffer.from("{}"), header, waterBedProcedure),
      );
    };
    await call();
    {
      using _ = registerSdk();
      await call();
    }
    expect(seen).toEqual([undefined, { traceId, spanId: expect.stringMatching(/^[0-9a-f]{16}$/) }]);
  });

  test("is not below the span that is active when its request begins, which may be another request's", () => {
    using _ = registerSdk();
    const contextValues = createContextValues();
    const other = trace.getTracer("program").startSpan("of another request");
    context.with(trace.setSpan(ROOT_CONTEXT, other), () =>
      createTracing().onRequest({ ...admitRequest, header: { get: () => null }, contextValues }),
    );
    expect(traceIdsOf(contextValues)?.traceId).not.toBe(other.spanContext().traceId);
  });
});

describe("the span of shared work", () => {
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

  test.each<{ name: string; error: unknown; status: SpanStatusCode; attributes: object }>([
    { name: "that succeeds", error: undefined, status: SpanStatusCode.UNSET, attributes: { batch: 2 } },
    {
      name: "that fails",
      error: new Error("no"),
      status: SpanStatusCode.ERROR,
      attributes: { batch: 2, "error.type": "_OTHER" },
    },
  ])(
    "$name is below the first request that is recorded, and linked with all of them",
    ({ error, status, attributes }) => {
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
    },
  );

  test("is not made when no request is recorded", () => {
    using sdk = registerSdk();
    const { tracing, requests } = beginRequests([false, false]);
    tracing.startShared({ name: "work", attributes: {}, requests })();
    expect(sdk.spans).toEqual([]);
  });

  test("has no more than 128 links", () => {
    using sdk = registerSdk();
    const { tracing, requests } = beginRequests([true]);
    tracing.startShared({ name: "work", attributes: {}, requests: Array(200).fill(requests[0]) })();
    expect(sdk.spans[0]?.links.length).toBe(128);
  });
});
