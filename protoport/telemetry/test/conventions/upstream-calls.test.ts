import { Code } from "@connectrpc/connect";
import { expect, test, vi } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createCallDurations } from "../../src/conventions/index.ts";
import { Metrics } from "../../src/metrics/metrics.ts";

test("createCallDurations looks up attributes once per upstream, method and code", () => {
  const attributesOf = vi.fn<(upstream: object) => { a: string }>(() => ({ a: "b" }));
  const observe = createCallDurations(new Metrics(), attributesOf);
  const [one, other] = [{}, {}];
  const { getReading, waterBed } = GreenhouseService.method;
  const record = (upstream: object, method: typeof getReading | typeof waterBed, code?: Code): void =>
    observe({ upstream, method })({ error: code && { code }, durationMs: 1, queuedMs: 0, retries: 0 });
  for (let round = 0; round < 2; round++) {
    record(one, getReading);
    record(one, getReading, Code.NotFound);
    record(one, waterBed);
    record(other, getReading);
  }
  expect(attributesOf.mock.calls).toEqual([[one], [one], [one], [other]]);
});
