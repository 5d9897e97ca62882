import { expect, test } from "vitest";
import { AwayWorkers } from "../../../src/stores/postgres/citus/away-workers.ts";
import type { Upkeep } from "../../../src/stores/upkeep.ts";

/** Half an hour ago, on the clock of `performance.now()`. */
const longAgo = (): number => performance.now() - 1_800_000;

test("a worker that is lost, and one that is back, is told of once each", () => {
  const reports: Upkeep[] = [];
  const away = new AwayWorkers((upkeep) => void reports.push(upkeep));
  away.failed(2, "refused", longAgo());
  away.failed(2, "refused again", longAgo());
  away.failed(0, "reset", longAgo());
  away.worked(1);
  away.worked(2);
  away.worked(2);
  away.worked(0);
  const lastedMs = expect.any(Number);
  expect(reports).toEqual([
    { kind: "worker-away", lastedMs, problem: "refused" },
    { kind: "worker-away", lastedMs, problem: "reset" },
    { kind: "worker-back", lastedMs },
    { kind: "worker-back", lastedMs },
  ]);
  // How long its callers had waited for it, and how long it is known to be lost.
  const [lost, , back] = reports.map(({ lastedMs: ms }) => ms >= 1_800_000);
  expect({ lost, back }).toEqual({ lost: true, back: false });
});

test("a worker that fails a second time is reported again, with the duration of the second failure", () => {
  const reports: Upkeep[] = [];
  const away = new AwayWorkers((upkeep) => void reports.push(upkeep));
  away.failed(1, "refused", performance.now());
  away.worked(1);
  const begunMs = performance.now() + 1;
  away.failed(1, "reset", begunMs);
  away.worked(1);
  expect(reports).toMatchObject([
    { kind: "worker-away", problem: "refused" },
    { kind: "worker-back" },
    { kind: "worker-away", problem: "reset" },
    { kind: "worker-back" },
  ]);
});

test("a worker that has committed another batch meanwhile is not to blame for one that was given up", () => {
  const reports: Upkeep[] = [];
  const away = new AwayWorkers((upkeep) => void reports.push(upkeep));
  const begunMs = performance.now();
  away.worked(1);
  away.failed(1, "busy", begunMs);
  expect(reports).toEqual([]);
  away.failed(0, "busy", begunMs);
  expect(reports).toMatchObject([{ kind: "worker-away", problem: "busy" }]);
});
