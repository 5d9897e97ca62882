import { createContextValues } from "@connectrpc/connect";
import { propagation, SpanKind, SpanStatusCode } from "@opentelemetry/api";
import type { NodeSDKConfiguration } from "@opentelemetry/sdk-node";
import { expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createProxy, type ForwardRules, type ProxyOptions } from "../../../proxy/src/create-proxy.ts";
import { withOpenTelemetry } from "../../src/opentelemetry/index.ts";
import { descriptorSetOf, exchangeHttp1, exchangeHttp2, type Field, startGreenhouse } from "@protoport/testing";
import { startProxy } from "../../../testing/src/gateway/proxy.ts";
import { envelope, grpcResponse, startScriptedServer } from "../../../testing/src/gateway/scripted-http2-server.ts";
import { registerSdk } from "../../../testing/src/telemetry/register-sdk.ts";
import { caller, reading, traceparent } from "../../../testing/src/telemetry/traced-greenhouse.ts";

// A proxy's upstream calls are client spans below the request's span, and parents of the upstream's spans.

/** Makes a traced call through a proxy with OpenTelemetry, and returns the header that the upstream gets. */
async function forward(
  rules?: ForwardRules,
  header: readonly Field[] = [traceparent, ["baggage", "a=b"]],
  options: Partial<ProxyOptions> = {},
): Promise<Readonly<Record<string, string>>> {
  let received = {};
  await using upstream = await startGreenhouse({
    getReading: (_, { requestHeader }) => ((received = Object.fromEntries(requestHeader)), {}),
  });
  const descriptors = descriptorSetOf(GreenhouseService.file);
  const upstreams = [
    { upstream: `http://127.0.0.1:${upstream.address.port}`, descriptors, ...(rules && { requestHeader: rules }) },
  ];
  const proxy = await createProxy(withOpenTelemetry({ ...options, upstreams }));
  const address = await proxy.listen({ host: "127.0.0.1", port: 0 });
  expect((await exchangeHttp1(address, { ...reading, header })).httpStatus).toBe(200);
  await proxy.close();
  return received;
}

const rpc = { "rpc.system.name": "grpc", "rpc.method": "greenhouse.v1.GreenhouseService/GetReading" };

test("the proxy passes its client span and the caller's baggage upstream", async () => {
  using sdk = registerSdk();
  const received = await forward();
  const [call, request] = sdk.spans;
  expect(request?.parentSpanContext?.spanId).toBe(caller.spanId);
  expect(call?.parentSpanContext?.spanId).toBe(request?.spanContext().spanId);
  expect([call?.name, call?.kind]).toEqual(["greenhouse.v1.GreenhouseService/GetReading", SpanKind.CLIENT]);
  const server = { "server.address": "127.0.0.1", "server.port": expect.any(Number) };
  expect(call?.attributes).toEqual({ ...rpc, "rpc.response.status_code": "OK", ...server });
  const spanId = String(call?.spanContext().spanId);
  expect(received).toMatchObject({ traceparent: `00-${caller.traceId}-${spanId}-01`, baggage: "a=b" });
});

test("requestHeader.set takes precedence over propagator fields", async () => {
  using sdk = registerSdk();
  const received = await forward({ deny: ["baggage"], set: () => ({ traceparent: "mine", "x-a": "1" }) });
  expect(received).toMatchObject({ traceparent: "mine", "x-a": "1" });
  expect(received).not.toHaveProperty("baggage");
  expect(sdk.spans).toHaveLength(2);
});

test("the span is propagated even if an interceptor replaces the context values", async () => {
  using sdk = registerSdk();
  const { traceparent: forwarded } = await forward(undefined, undefined, {
    interceptors: [(next) => (request) => next({ ...request, contextValues: createContextValues() })],
  });
  expect(forwarded).toContain(sdk.spans[0]?.spanContext().spanId);
});

test("the caller's traceparent and baggage are forwarded without an SDK", async () =>
  expect(await forward()).toMatchObject({ traceparent: traceparent[1], baggage: "a=b" }));

test.each<[name: string, sent: readonly Field[], want: string | undefined]>(
  // oxfmt-ignore
  [
    ["forwarded with its traceparent", [traceparent, ["tracestate", "a=1"]], "a=1"],
    ["removed without a traceparent", [["tracestate", "a=1"]], undefined],
    ["removed with a malformed traceparent", [["traceparent", "00-1"], ["tracestate", "a=1"]], undefined],
  ],
)("the caller's tracestate is %s", async (_name, sent, want) => {
  using sdk = registerSdk();
  const { traceparent: forwarded, tracestate } = await forward(undefined, sent);
  expect(tracestate).toBe(want);
  expect(forwarded).toContain(sdk.spans[0]?.spanContext().spanId);
});

/** Writes a field for each baggage entry, as Jaeger's propagator does. */
const spreadingPropagator: NonNullable<NodeSDKConfiguration["textMapPropagator"]> = {
  inject: (active, transport, setter) => {
    for (const [name, { value }] of propagation.getBaggage(active)?.getAllEntries() ?? [])
      setter.set(transport, `uberctx-${name}`, value);
  },
  extract: (active, transport, getter) => {
    const name = decodeURIComponent(String(getter.get(transport, "baggage"))).split("=")[0] ?? "";
    return propagation.setBaggage(active, propagation.createBaggage({ [name]: { value: "b" } }));
  },
  fields: () => [],
};

test("a propagator cannot add header fields from the caller's baggage", async () => {
  using sdk = registerSdk({ textMapPropagator: spreadingPropagator });
  const received = await forward(undefined, [["baggage", "a%0Ab=c"]]);
  expect(Object.keys(received).filter((name) => name.startsWith("uberctx"))).toEqual([]);
  expect(received).toMatchObject({ baggage: "a%0Ab=c" });
  expect(sdk.spans).toHaveLength(2);
});

const brokenPropagator: NonNullable<NodeSDKConfiguration["textMapPropagator"]> = {
  inject: () => {
    throw new TypeError("the propagator is broken");
  },
  extract: (active) => active,
  fields: () => [],
};

test("a propagator that throws does not fail the call", async () => {
  using sdk = registerSdk({ textMapPropagator: brokenPropagator });
  expect(await forward()).toMatchObject({ traceparent: traceparent[1] });
  expect(sdk.spans).toHaveLength(2);
});

test("requestHeader.set that returns a promise is rejected", () => {
  const rules: object = { set: () => Promise.reject(new Error("no key")) };
  const requestHeader: ForwardRules = rules;
  const [upstream] = withOpenTelemetry({ upstreams: [{ requestHeader }] }).upstreams;
  const request = Object.assign(Object.create(null), { contextValues: createContextValues() });
  expect(() => upstream?.requestHeader.set?.(request)).toThrow("requestHeader.set must be synchronous, got a promise");
});

test.each([
  { upstream: "http://127.0.0.1:1", server: { "server.address": "127.0.0.1", "server.port": 1 } },
  { upstream: "unix:/none/a.sock", server: { "server.address": "/none/a.sock" } },
])("a failed call's client span to $upstream has its code and server", async ({ upstream, server }) => {
  using sdk = registerSdk();
  const upstreams = [{ upstream, descriptors: descriptorSetOf(GreenhouseService.file) }];
  const proxy = await createProxy(withOpenTelemetry({ upstreams }));
  const address = await proxy.listen({ host: "127.0.0.1", port: 0 });
  expect((await exchangeHttp1(address, { ...reading, header: [traceparent] })).httpStatus).toBe(503);
  await proxy.close();
  const [call] = sdk.spans;
  const failed = { "rpc.response.status_code": "UNAVAILABLE", "error.type": "UNAVAILABLE" };
  expect(call?.attributes).toEqual({ ...rpc, ...failed, ...server });
  expect(call?.status.code).toBe(SpanStatusCode.ERROR);
});

test("the application's onUpstreamCall is also called", async () => {
  using sdk = registerSdk();
  const ended: string[] = [];
  const onEnd = (name: string) => () => void ended.push(name);
  await forward(undefined, undefined, { onUpstreamCall: ({ method }) => onEnd(method.name) });
  expect([ended, sdk.spans.length]).toEqual([["GetReading"], 2]);
});

test("a traced stream's messages are forwarded without decoding", async () => {
  using sdk = registerSdk();
  // Decoding and encoding the message would remove the first sensor.
  const received = envelope(Buffer.from("\n\u0001a\n\u0001b"));
  await using upstream = await startScriptedServer({
    request: (connection, id) => connection.send(...grpcResponse(id, received)),
  });
  await using proxy = await startProxy(upstream.baseUrl, [GreenhouseService.file], withOpenTelemetry({}));
  const { body } = await exchangeHttp2(proxy.address, {
    httpMethod: "POST",
    path: "/greenhouse.v1.GreenhouseService/WatchReadings",
    header: [["content-type", "application/grpc+proto"], ["te", "trailers"], traceparent],
    body: envelope(Buffer.alloc(0)),
  });
  expect([body, sdk.spans.length > 0]).toEqual([received, true]);
});
