import { propagation, trace } from "@opentelemetry/api";
import type { HandlerContext } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { traceIdsOf } from "../../src/opentelemetry/index.ts";
import { spanOf } from "../../src/opentelemetry/request-context.ts";
import { exchange } from "../../../testing/src/gateway/wire-format.ts";
import { registerSdk } from "../../../testing/src/telemetry/register-sdk.ts";
import { reading, startTraced } from "../../../testing/src/telemetry/traced-greenhouse.ts";

// An SDK that is registered when the gateway is there already. Until then the API gives out tracers that wait for an
// SDK; they hear of one that is registered by the same copy of the API, and of no other.

test("spans go to an SDK that is registered after the gateway was made, and of two to the first", async () => {
  await using greenhouse = await startTraced({ getReading: () => ({}) });
  await exchange(greenhouse.address, "1.1", reading);
  using first = registerSdk();
  await exchange(greenhouse.address, "1.1", reading);
  using second = registerSdk();
  await exchange(greenhouse.address, "2", reading);
  await greenhouse.answered(3);
  expect([first.spans.length, second.spans.length]).toEqual([2, 0]);
  expect(greenhouse.faults).toEqual([]);
});

test("a call without an SDK has no context, and one with baggage has that, with and without traces", async () => {
  const seen: unknown[] = [];
  const look = (_: unknown, { values }: HandlerContext): object => {
    const shelf = propagation.getActiveBaggage()?.getEntry("shelf")?.value;
    const isActive = trace.getActiveSpan()?.spanContext() !== undefined;
    seen.push([isActive, shelf, traceIdsOf(values) !== undefined, spanOf(values) !== undefined]);
    return {};
  };
  await using greenhouse = await startTraced({ getReading: look });
  await exchange(greenhouse.address, "1.1", { ...reading, header: [["baggage", "shelf=3"]] });
  {
    using _ = registerSdk();
    await exchange(greenhouse.address, "1.1", { ...reading, header: [["baggage", "shelf=3"]] });
  }
  {
    using _ = registerSdk();
    trace.disable();
    await using untraced = await startTraced({ getReading: look });
    await exchange(untraced.address, "1.1", { ...reading, header: [["baggage", "shelf=3"]] });
  }
  // Without traces there is a span, which has no ids.
  expect(seen).toEqual([
    [false, undefined, false, false],
    [true, "3", true, true],
    [true, "3", false, true],
  ]);
});
