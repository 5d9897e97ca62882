import { propagation, trace } from "@opentelemetry/api";
import type { HandlerContext } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { traceIdsOf } from "../../src/opentelemetry/index.ts";
import { spanOf } from "../../src/opentelemetry/request-context.ts";
import { exchange } from "../../../testing/src/gateway/wire-format.ts";
import { registerSdk } from "../../../testing/src/telemetry/register-sdk.ts";
import { reading, startTraced } from "../../../testing/src/telemetry/traced-greenhouse.ts";

// An SDK may be registered after the gateway was created. Until then, the API returns proxy tracers, which switch to an
// SDK that is registered with the same copy of the API.

test("spans are sent to the first SDK registered after the gateway's creation", async () => {
  await using greenhouse = await startTraced({ getReading: () => ({}) });
  await exchange(greenhouse.address, "1.1", reading);
  using first = registerSdk();
  await exchange(greenhouse.address, "1.1", reading);
  using second = registerSdk();
  await exchange(greenhouse.address, "2", reading);
  await greenhouse.completed(3);
  expect([first.spans.length, second.spans.length, greenhouse.faults]).toEqual([2, 0, []]);
});

test("a call's baggage is active with an SDK, even without traces", async () => {
  const contexts: unknown[] = [];
  const record = (_: unknown, { values }: HandlerContext): object => {
    const shelf = propagation.getActiveBaggage()?.getEntry("shelf")?.value;
    const isActive = trace.getActiveSpan()?.spanContext() !== undefined;
    contexts.push([isActive, shelf, traceIdsOf(values) !== undefined, spanOf(values) !== undefined]);
    return {};
  };
  await using greenhouse = await startTraced({ getReading: record });
  await exchange(greenhouse.address, "1.1", { ...reading, header: [["baggage", "shelf=3"]] });
  {
    using _ = registerSdk();
    await exchange(greenhouse.address, "1.1", { ...reading, header: [["baggage", "shelf=3"]] });
  }
  {
    using _ = registerSdk();
    trace.disable();
    await using untraced = await startTraced({ getReading: record });
    await exchange(untraced.address, "1.1", { ...reading, header: [["baggage", "shelf=3"]] });
  }
  // If traces are off, the span has no ids.
  const [early, ...later] = contexts;
  expect(early).toEqual([false, undefined, false, false]);
  expect(later).toEqual([
    [true, "3", true, true],
    [true, "3", false, true],
  ]);
});
