import type { NodeSDKConfiguration } from "@opentelemetry/sdk-node";
import { expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createProxy, type ForwardRules } from "../../../src/gateway/create-proxy.ts";
import { withOpenTelemetry } from "../../../src/gateway/opentelemetry/index.ts";
import { exchangeHttp1 } from "../../support/carriers/http1-connection.ts";
import { descriptorSetOf } from "../../support/gateway/descriptor-set.ts";
import { startGreenhouse } from "../../support/gateway/greenhouse.ts";
import { registerSdk } from "../../support/telemetry/register-sdk.ts";
import { caller, reading, traceparent } from "../../support/telemetry/traced-greenhouse.ts";

// The calls that a proxy makes belong to the span of the request that it passes on.

/** What the upstream gets of a call through a proxy with spans, whose caller is in a trace. */
async function pass(metadata?: ForwardRules): Promise<Readonly<Record<string, string>>> {
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
  const proxy = await createProxy(withOpenTelemetry({ upstreams }));
  const address = await proxy.listen({ host: "127.0.0.1", port: 0 });
  const header = [traceparent, ["baggage", "a=b"]] as const;
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

test("without an SDK the caller's fields go through", async () => {
  expect(await pass()).toMatchObject({ traceparent: traceparent[1], baggage: "a=b" });
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
