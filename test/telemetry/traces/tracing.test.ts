import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { ContextValues, Interceptor } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { activeTrace, createSampler, createTracing, type EndedSpan, traceKey } from "../../../src/telemetry/index.ts";
import { callings, greenhouseClient, startGreenhouse, waterBedProcedure } from "../../support/gateway/greenhouse.ts";
import { exchange, rpcRequest, wireFormats } from "../../support/gateway/wire-format.ts";

const traceId = "0af7651916cd43dd8448eb211c80319c";
const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-01`, baggage: "shelf=3" };

function collect(): { spans: EndedSpan[]; tracing: ReturnType<typeof createTracing> } {
  const spans: EndedSpan[] = [];
  const sampler = createSampler("parentbased_always_on", 1);
  return { spans, tracing: createTracing({ sampler, take: (span) => void spans.push(span) }) };
}

describe.each(callings)("over $name, a trace is active", (calling) => {
  test("in interceptors and handlers of every kind of RPC, also after they have waited", async () => {
    const { spans, tracing } = collect();
    const seen: (string | undefined)[] = [];
    const look = (): void => {
      const trace = activeTrace();
      seen.push(trace && `${trace.context.traceId} ${trace.context.spanId} ${trace.baggage.get("shelf")}`);
    };
    const watching: Interceptor = (next) => async (request) => {
      look();
      await nextTurn();
      const response = await next(request);
      look();
      return response;
    };
    await using greenhouse = await startGreenhouse(
      {
        waterBed: async () => {
          look();
          await nextTurn();
          look();
          return {};
        },
        async *watchReadings() {
          look();
          yield {};
          await nextTurn();
          look();
          yield {};
        },
        async recordReadings(readings) {
          for await (const _ of readings) look();
          return {};
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
    const calls: (() => Promise<unknown>)[] = [
      () => client.waterBed({}, { headers }),
      async () => {
        for await (const _ of client.watchReadings({}, { headers })) continue;
      },
    ];
    for (const call of calls) {
      const end = answered();
      seen.length = 0;
      await call();
      await end;
      const span = spans.at(-1);
      const inside = seen.filter((each) => each !== undefined);
      expect(inside.length).toBeGreaterThan(3);
      expect(new Set(inside)).toEqual(new Set([`${traceId} ${span?.context.spanId} 3`]));
      expect(span).toMatchObject({ kind: "server", parentSpanId: "b7ad6b7169203331", context: { traceId } });
    }
    expect(spans.map(({ name }) => name)).toEqual([
      "greenhouse.v1.GreenhouseService/WaterBed",
      "greenhouse.v1.GreenhouseService/WatchReadings",
    ]);
  });
});

test("the trace is known before it is active, and what a program has made active itself stays so", async () => {
  const { tracing } = collect();
  const seen: unknown[] = [];
  const own = new AsyncLocalStorage<string>();
  const look = (values: ContextValues): void => {
    seen.push([values.get(traceKey)?.context.spanId, activeTrace()?.context.spanId, own.getStore()]);
  };
  await using greenhouse = await startGreenhouse(
    {
      waterBed: async (_, { values }) => {
        look(values);
        await nextTurn();
        look(values);
        return {};
      },
    },
    {
      onRequest: tracing.onRequest,
      admit: ({ contextValues }) => look(contextValues),
      interceptors: [
        (next) => (request) => own.run("own", next, request),
        tracing.interceptor,
        (next) => (request) => {
          look(request.contextValues);
          return next(request);
        },
      ],
      onAnswer: ({ contextValues }) => look(contextValues),
    },
  );
  const request = rpcRequest(wireFormats["connect-json"], Buffer.from("{}"), [], waterBedProcedure);
  await exchange(greenhouse.address, "2", request);
  const spanId = expect.stringMatching(/^[0-9a-f]{16}$/);
  const inside = [spanId, spanId, "own"];
  expect(seen.slice(0, -1)).toEqual([[spanId, undefined, undefined], inside, inside, inside]);
  expect(new Set(seen.map((each) => String(each).slice(0, 16))).size).toBe(1);
  expect(activeTrace()).toBe(undefined);
});

describe("a span", () => {
  test.each<{ name: string; request: () => Parameters<typeof exchange>[2]; want: object }>([
    {
      name: "of REST has the route, never the path",
      request: () => ({ httpMethod: "GET", path: "/sensors/secret-7/reading", header: [] }),
      want: {
        name: "GET /sensors/{sensor}/reading",
        attributes: { "http.response.status_code": 200 },
        parentSpanId: "",
      },
    },
    {
      name: "of what is not there has the method alone",
      request: () => ({ httpMethod: "GET", path: "/secret", header: [] }),
      want: { name: "GET", attributes: { "http.response.status_code": 404 } },
    },
    {
      name: "of a call that fails says so",
      request: () => rpcRequest(wireFormats["connect-json"], Buffer.from("{}"), [], waterBedProcedure),
      want: { attributes: { "rpc.response.status_code": "unimplemented", "error.type": "unimplemented" } },
    },
    {
      name: "below a malformed parent begins a trace of its own",
      request: () => ({ httpMethod: "GET", path: "/secret", header: [["traceparent", `00-${traceId}-0-01`]] }),
      want: { parentSpanId: "" },
    },
  ])("$name", async ({ request, want }) => {
    const { spans, tracing } = collect();
    await using greenhouse = await startGreenhouse(
      { getReading: () => ({}) },
      { onRequest: tracing.onRequest, interceptors: [tracing.interceptor], onAnswer: tracing.onAnswer },
    );
    for (const version of ["1.1", "2"] as const) await exchange(greenhouse.address, version, request());
    await expect.poll(() => spans.length).toBe(2);
    for (const span of spans) {
      expect(span).toMatchObject(want);
      expect(span.context.traceId).not.toBe(traceId);
      expect(span.endMs).toBeGreaterThanOrEqual(span.startMs);
    }
    expect(JSON.stringify(spans)).not.toContain("secret");
  });

  test("is not made where the caller's is not recorded, and the trace goes on", async () => {
    const { spans, tracing } = collect();
    const seen: unknown[] = [];
    await using greenhouse = await startGreenhouse(
      {
        waterBed: () => {
          seen.push(activeTrace()?.context);
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
    expect(seen).toEqual([{ traceId, spanId: expect.stringMatching(/^[0-9a-f]{16}$/), traceFlags: 0, traceState: "" }]);
    expect(spans).toEqual([]);
  });
});
