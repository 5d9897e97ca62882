import { expect, test } from "vitest";
import { UnavailableWorkers } from "../../../../../src/stores/citus/unavailable-workers.ts";
import type { Upkeep } from "../../../../../src/stores/contract/upkeep.ts";

/** Half an hour ago, on the `performance.now()` clock. */
const longAgo = (): number => performance.now() - 1_800_000;

test("a worker's failure and its recovery are reported once each", () => {
  const reports: Upkeep[] = [];
  const away = new UnavailableWorkers((upkeep) => void reports.push(upkeep));
  away.recordFailure(2, "refused", longAgo());
  away.recordFailure(2, "refused again", longAgo());
  away.recordFailure(0, "reset", longAgo());
  away.recordSuccess(1);
  away.recordSuccess(2);
  away.recordSuccess(2);
  away.recordSuccess(0);
  const lastedMs = expect.any(Number);
  expect(reports).toEqual([
    { kind: "worker-unavailable", lastedMs, problem: "refused" },
    { kind: "worker-unavailable", lastedMs, problem: "reset" },
    { kind: "worker-recovered", lastedMs },
    { kind: "worker-recovered", lastedMs },
  ]);
  // The first duration is how long the callers had waited for the worker, the second how long it was known to be
  // unavailable.
  const [lost, , back] = reports.map((report) => "lastedMs" in report && report.lastedMs >= 1_800_000);
  expect({ lost, back }).toEqual({ lost: true, back: false });
});

test("a worker's second failure is reported again, with its own duration", () => {
  const reports: Upkeep[] = [];
  const away = new UnavailableWorkers((upkeep) => void reports.push(upkeep));
  away.recordFailure(1, "refused", performance.now());
  away.recordSuccess(1);
  const begunMs = performance.now() + 1;
  away.recordFailure(1, "reset", begunMs);
  away.recordSuccess(1);
  expect(reports).toMatchObject([
    { kind: "worker-unavailable", problem: "refused" },
    { kind: "worker-recovered" },
    { kind: "worker-unavailable", problem: "reset" },
    { kind: "worker-recovered" },
  ]);
});

test("a worker that committed another batch meanwhile is not reported as failed", () => {
  const reports: Upkeep[] = [];
  const away = new UnavailableWorkers((upkeep) => void reports.push(upkeep));
  const begunMs = performance.now();
  away.recordSuccess(1);
  away.recordFailure(1, "busy", begunMs);
  expect(reports).toEqual([]);
  away.recordFailure(0, "busy", begunMs);
  expect(reports).toMatchObject([{ kind: "worker-unavailable", problem: "busy" }]);
});
