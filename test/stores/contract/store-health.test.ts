import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { retryIntervalMs, StoreHealth, type StoreProblem } from "../../../src/stores/contract/store-health.ts";

const full: StoreProblem = { text: "the disk is full", isTemporary: true };
const damaged: StoreProblem = { text: "the file is damaged", isTemporary: false };
const watchIntervalMs = 10 * retryIntervalMs;
beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] }));
afterEach(() => void vi.useRealTimers());

/** Opens health whose checks wait until the test finishes them. */
function openHealth() {
  const checks: PromiseWithResolvers<StoreProblem | undefined>[] = [];
  /** Whether a deletion had been committed recently, for each check. */
  const committedFlags: boolean[] = [];
  const findProblem = (hasCommitted: boolean): Promise<StoreProblem | undefined> => {
    const pendingCheck = Promise.withResolvers<StoreProblem | undefined>();
    checks.push(pendingCheck);
    committedFlags.push(hasCommitted);
    return pendingCheck.promise;
  };
  const finishCheck = async (problem: StoreProblem | undefined): Promise<void> => {
    checks.at(-1)?.resolve(problem);
    await nextTurn();
  };
  return { health: new StoreHealth({ findProblem, watchIntervalMs }), checks, committedFlags, finishCheck };
}

describe("a store's health", () => {
  test("has no problem until one is reported, and recovers once a check finds no problem", async () => {
    const { health, checks, finishCheck } = openHealth();
    expect(health.problem).toBeUndefined();
    health.report(full);
    for (const [at, found] of [full, undefined].entries()) {
      expect(health.problem).toBe(full);
      vi.advanceTimersByTime(retryIntervalMs);
      expect(checks).toHaveLength(at + 1);
      await finishCheck(found);
    }
    expect(health.problem).toBeUndefined();
  });

  test("keeps the first permanent problem, and never recovers", async () => {
    const { health, finishCheck } = openHealth();
    health.report(full);
    vi.advanceTimersByTime(retryIntervalMs);
    health.report(damaged);
    await finishCheck(undefined);
    health.report(full);
    expect(health.problem).toBe(damaged);
  });

  test("is not checked after a permanent problem", async () => {
    const { health, checks } = openHealth();
    health.report(full);
    health.report(full);
    health.report(damaged);
    expect(vi.getTimerCount()).toBe(0);
    await health.check();
    expect(checks).toHaveLength(0);
  });

  test("is checked once after two reports, at the interval after the second", () => {
    const { health, checks } = openHealth();
    health.report(full);
    vi.advanceTimersByTime(retryIntervalMs - 1);
    health.report(full);
    vi.advanceTimersByTime(retryIntervalMs - 1);
    expect(checks).toHaveLength(0);
    vi.advanceTimersByTime(1);
    expect(checks).toHaveLength(1);
  });

  test("reports a periodic check's problem, and runs one check at a time", async () => {
    const { health, checks, finishCheck } = openHealth();
    vi.advanceTimersByTime(3 * watchIntervalMs);
    expect(checks).toHaveLength(1);
    await finishCheck(undefined);
    vi.advanceTimersByTime(watchIntervalMs);
    await finishCheck(damaged);
    expect([checks.length, health.problem]).toEqual([2, damaged]);
  });

  test("is only checked by its timer while a problem is known", async () => {
    const { health, checks, finishCheck } = openHealth();
    health.report(full);
    await health.check();
    expect(checks).toHaveLength(0);
    vi.advanceTimersByTime(retryIntervalMs);
    await finishCheck(undefined);
    // The same problem is detected again.
    const checking = health.check();
    await finishCheck(full);
    await checking;
    expect(health.problem).toBe(full);
  });

  test("is checked with a write unless a deletion was committed recently, and not before a problem", async () => {
    const { health, committedFlags, finishCheck } = openHealth();
    expect(health.hasCommittedSince(0)).toBe(false);
    vi.advanceTimersByTime(watchIntervalMs);
    await finishCheck(undefined);
    health.recordCommit();
    expect(health.hasCommittedSince(0)).toBe(true);
    void health.check();
    await finishCheck(full);
    // Commits before a problem do not show that the store works again.
    expect(health.hasCommittedSince(0)).toBe(false);
    vi.advanceTimersByTime(retryIntervalMs);
    expect(committedFlags).toEqual([false, true, false]);
  });
});
