import { createContextValues } from "@connectrpc/connect";
import { propagation } from "@opentelemetry/api";
import type { NodeSDKConfiguration } from "@opentelemetry/sdk-node";
import { expect, test } from "vitest";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createProxy, type ForwardRules, type ProxyOptions } from "../../../proxy/src/create-proxy.ts";
import { withOpenTelemetry } from "../../src/opentelemetry/index.ts";
import type { Field } from "../../../testing/src/carriers/exchange.ts";
import { exchangeHttp1 } from "../../../testing/src/carriers/http1-connection.ts";
import { descriptorSetOf } from "../../../testing/src/gateway/descriptor-set.ts";
import { startGreenhouse } from "../../../testing/src/gateway/greenhouse.ts";
import { registerSdk } from "../../../testing/src/telemetry/register-sdk.ts";
import { caller, reading, traceparent } from "../../../testing/src/telemetry/traced-greenhouse.ts";

// The calls that a proxy makes belong to the span of the request that it passes on.

/** What the upstream gets of a call through a proxy with spans, whose caller is in a trace. */
async function pass(
  metadata?: ForwardRules,
  header: readonly Field[] = [traceparent, ["baggage", "a=b"]],
  options: Partial<ProxyOptions> = {},
): Promise<Readonly<Record<string, string>>> {
  let got = {};
  await using upstream = await startGreenhouse({
    getReading: (_, { requestHeader }) => {
      got = Object.fromEntries(requestHeader);
      return {};
    },
  });
  const descriptors = descriptorSetOf(GreenhouseService.file);
  const upstreams = [
    { upstream: `http://127.0.0.1:${upstream.address.port}`, descriptors, ...(metadata && { metadata }) },
  ];
  const proxy = await createProxy(withOpenTelemetry({ ...options, upstreams }));
  const address = await proxy.listen({ host: "127.0.0.1", port: 0 });
  expect((await exchangeHttp1(address, { ...reading, header })).httpStatus).toBe(200);
  await proxy.close();
  return got;
}

test("an upstream gets the span of the proxy, in the trace of the caller, with its baggage", async () => {
  using sdk = registerSdk();
  const got = await pass();
  const [span] = sdk.spans;
  expect(span?.parentSpanContext?.spanId).toBe(caller.spanId);
  const spanId = String(span?.spanContext().spanId);
  expect(got).toMatchObject({ traceparent: `00-${caller.traceId}-${spanId}-01`, baggage: "a=b" });
});

test("what the program sets itself counts above, and other fields of the rules stay", async () => {
  using sdk = registerSdk();
  const got = await pass({ deny: ["baggage"], set: () => ({ traceparent: "mine", "x-a": "1" }) });
  expect(got).toMatchObject({ traceparent: "mine", "x-a": "1" });
  expect(got).not.toHaveProperty("baggage");
  expect(sdk.spans).toHaveLength(1);
});

test("an interceptor that replaces the context values takes no span from the calls that are passed on", async () => {
  using sdk = registerSdk();
  const { traceparent: passed } = await pass(undefined, undefined, {
    interceptors: [(next) => (request) => next({ ...request, contextValues: createContextValues() })],
  });
  expect(passed).toContain(sdk.spans[0]?.spanContext().spanId);
});

test("without an SDK the caller's fields go through", async () => {
  expect(await pass()).toMatchObject({ traceparent: traceparent[1], baggage: "a=b" });
});

test.each<{ readonly name: string; readonly sent: readonly Field[]; readonly want: string | undefined }>([
  { name: "goes on with its traceparent", sent: [traceparent, ["tracestate", "a=1"]], want: "a=1" },
  { name: "stays here without one", sent: [["tracestate", "a=1"]], want: undefined },
  {
    name: "stays here with one that is malformed",
    sent: [
      ["traceparent", "00-1"],
      ["tracestate", "a=1"],
    ],
    want: undefined,
  },
])("the caller's tracestate $name", async ({ sent, want }) => {
  using sdk = registerSdk();
  const { traceparent: passed, tracestate } = await pass(undefined, sent);
  expect(tracestate).toBe(want);
  expect(passed).toContain(sdk.spans[0]?.spanContext().spanId);
});

/** Writes a field for each name in the baggage, as that of Jaeger does. */
const spreadingPropagator: NonNullable<NodeSDKConfiguration["textMapPropagator"]> = {
  inject: (active, carrier, setter) => {
    for (const [name, { value }] of propagation.getBaggage(active)?.getAllEntries() ?? [])
      setter.set(carrier, `uberctx-${name}`, value);
  },
  extract: (active, carrier, getter) => {
    const name = decodeURIComponent(String(getter.get(carrier, "baggage"))).split("=")[0] ?? "";
    return propagation.setBaggage(active, propagation.createBaggage({ [name]: { value: "b" } }));
  },
  fields: () => [],
};

test("baggage of a caller becomes no field, whatever its names", async () => {
  using sdk = registerSdk({ textMapPropagator: spreadingPropagator });
  const got = await pass(undefined, [["baggage", "a%0Ab=c"]]);
  expect(Object.keys(got).filter((name) => name.startsWith("uberctx"))).toEqual([]);
  expect(got).toMatchObject({ baggage: "a%0Ab=c" });
  expect(sdk.spans).toHaveLength(1);
});

const brokenPropagator: NonNullable<NodeSDKConfiguration["textMapPropagator"]> = {
  inject: () => {
    throw new TypeError("the propagator is broken");
  },
  extract: (active) => active,
  fields: () => [],
};

test("a propagator that throws fails no call", async () => {
  using sdk = registerSdk({ textMapPropagator: brokenPropagator });
  expect(await pass()).toMatchObject({ traceparent: traceparent[1] });
  expect(sdk.spans).toHaveLength(1);
});

test("fields of the program that come by a promise are refused beside those of the propagators", () => {
  const rules: object = { set: () => Promise.reject(new Error("no key")) };
  const metadata: ForwardRules = rules;
  const [upstream] = withOpenTelemetry({ upstreams: [{ metadata }] }).upstreams;
  const request = Object.assign(Object.create(null), { contextValues: createContextValues() });
  expect(() => upstream?.metadata.set?.(request)).toThrow("the set of metadata must return its result, got a promise");
});
