import { metrics, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import type { NodeSDKConfiguration } from "@opentelemetry/sdk-node";
import { InMemorySpanExporter, SimpleSpanProcessor, type SpanProcessor } from "@opentelemetry/sdk-trace";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { exchange, getReadingProcedure, rpcRequest, wireFormats } from "@protoport/testing";
import { registerSdk } from "../../../testing/src/telemetry/register-sdk.ts";
import { reading, startTraced, traceparent } from "../../../testing/src/telemetry/traced-greenhouse.ts";

function broken(): never {
  throw new Error("the SDK is broken");
}

const brokenWith = new AsyncLocalStorageContextManager();
brokenWith.with = broken;

function processor(parts: Partial<SpanProcessor>): Partial<NodeSDKConfiguration> {
  const quiet = { onStart: () => {}, onEnd: () => {}, forceFlush: async () => {}, shutdown: async () => {} };
  return { spanProcessors: [{ ...quiet, ...parts }] };
}

describe("an OpenTelemetry SDK that throws", () => {
  const exporter = new InMemorySpanExporter();
  exporter.export = broken;
  const cases: (readonly [name: string, parts: Partial<NodeSDKConfiguration>, isReported: boolean, active: string])[] =
    [
      ["propagator", { textMapPropagator: { extract: broken, inject: () => {}, fields: () => [] } }, true, "no span"],
      ["sampler", { sampler: { shouldSample: broken, toString: () => "broken" } }, true, "no span"],
      ["id generator", { idGenerator: { generateTraceId: broken, generateSpanId: broken } }, true, "no span"],
      ["span processor's onStart", processor({ onStart: broken }), true, "no span"],
      ["span processor's onEnd", processor({ onEnd: broken }), true, "a span"],
      ["exporter", { spanProcessors: [new SimpleSpanProcessor({ exporter })] }, false, "a span"],
      ["context manager", { contextManager: brokenWith }, false, "no span"],
    ];

  test.each(cases)("in its %s does not fail a call or repeat a hook", async (_name, parts, isReported, active) => {
    using _ = registerSdk(parts);
    const called: string[] = [];
    const call = (name: string): void => void called.push(name);
    const activeSpans = new Set<string>();
    await using greenhouse = await startTraced(
      {
        getReading: () => {
          call("handler");
          activeSpans.add(trace.getActiveSpan() === undefined ? "no span" : "a span");
          return {};
        },
        async *watchReadings() {
          call("handler");
          yield {};
        },
      },
      {
        options: {
          onRequest: () => call("onRequest"),
          admit: () => call("admit"),
          interceptors: [
            (next) => (request) => {
              call("interceptor");
              return next(request);
            },
          ],
          onResponse: () => call("onResponse"),
        },
      },
    );
    const all = ["onRequest", "admit", "interceptor", "handler", "onResponse"];
    const watchReadings = "/greenhouse.v1.GreenhouseService/WatchReadings";
    const watchingByGrpc = rpcRequest(wireFormats.grpc, new Uint8Array(0), [], watchReadings);
    const byGrpc = rpcRequest(wireFormats.grpc, new Uint8Array(0), [], getReadingProcedure);
    const requests = [reading, byGrpc, watchingByGrpc];
    for (const [index, request] of requests.entries()) {
      called.length = 0;
      const traced = { ...request, header: [...request.header, traceparent] };
      const { httpStatus, trailer } = await exchange(greenhouse.address, "2", traced);
      const statuses = trailer.filter(([name]) => name === "grpc-status");
      expect([httpStatus, ...statuses].flat()).toEqual(index === 0 ? [200] : [200, "grpc-status", "0"]);
      await greenhouse.completed(index + 1);
      expect(called).toEqual(all);
    }
    expect([...activeSpans]).toEqual([active]);
    const reported = greenhouse.faults.map((fault) => (fault instanceof Error ? fault.message : fault));
    expect(new Set(reported)).toEqual(new Set(isReported ? ["the SDK is broken"] : []));
  });

  test("in its meter does not fail a call", async () => {
    using sdk = registerSdk();
    metrics.setGlobalMeterProvider({ getMeter: broken });
    await using greenhouse = await startTraced({ getReading: () => ({}) });
    expect((await exchange(greenhouse.address, "2", reading)).httpStatus).toBe(200);
    await expect.poll(() => sdk.spans.length).toBe(1);
    expect(greenhouse.faults).toEqual([new Error("the SDK is broken")]);
  });
});

describe("an application error with OpenTelemetry", () => {
  test.each(["interceptor", "admit", "handler"])("does not cause a second call (thrown in: %s)", async (place) => {
    using _ = registerSdk();
    let calls = 0;
    const fail = (at: string) => (): void => {
      if (at !== place) return;
      calls += 1;
      throw new ConnectError("no", Code.PermissionDenied);
    };
    await using greenhouse = await startTraced(
      { getReading: () => (fail("handler")(), {}) },
      {
        options: {
          admit: fail("admit"),
          interceptors: [
            (next) => (request) => {
              fail("interceptor")();
              return next(request);
            },
          ],
        },
      },
    );
    expect([(await exchange(greenhouse.address, "1.1", reading)).httpStatus, calls]).toEqual([403, 1]);
    expect(greenhouse.faults).toEqual([]);
  });

  test("in a hook's promise is passed to onFault", async () => {
    const failure = new Error("the hook failed");
    const reject = (): unknown => Promise.reject(failure);
    await using greenhouse = await startTraced({ getReading: () => ({}) }, { options: { onRequest: reject } });
    expect((await exchange(greenhouse.address, "1.1", reading)).httpStatus).toBe(200);
    await expect.poll(() => greenhouse.faults).toEqual([failure]);
  });
});
