import { expect, test } from "vitest";
import { AwayWorkers } from "../../../src/plants/postgres/away-workers.ts";
import type { Upkeep } from "../../../src/plants/upkeep.ts";

/** Half an hour ago, on the clock of `performance.now()`. */
const longAgo = (): number => performance.now() - 1_800_000;

test("a worker that is lost, and one that is back, is told of once each", () => {
  const told: Upkeep[] = [];
  const away = new AwayWorkers((upkeep) => void told.push(upkeep));
  expect(away.areThere).toBe(false);
  away.worked(2);
  away.failed(2, "refused", longAgo());
  away.failed(2, "refused again", longAgo());
  away.failed(0, "reset", longAgo());
  away.worked(1);
  away.worked(2);
  away.worked(2);
  expect(away.areThere).toBe(true);
  away.worked(0);
  expect(away.areThere).toBe(false);
  const lastedMs = expect.any(Number);
  expect(told).toEqual([
    { kind: "worker-away", lastedMs, problem: "refused" },
    { kind: "worker-away", lastedMs, problem: "reset" },
    { kind: "worker-back", lastedMs },
    { kind: "worker-back", lastedMs },
  ]);
  // How long its callers had waited for it, and how long it is known to be lost.
  const [lost, , back] = told.map(({ lastedMs: ms }) => ms >= 1_800_000);
  expect({ lost, back }).toEqual({ lost: true, back: false });
});
