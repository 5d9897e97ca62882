import { createHook } from "node:async_hooks";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterAll, describe, test } from "vitest";
import { StoreHealth, type StoreProblem, retryIntervalMs } from "../../../../../src/stores/contract/store-health.ts";

const full: StoreProblem = { text: "the disk is full", isTemporary: true };
const damaged: StoreProblem = { text: "the file is damaged", isTemporary: false };

const away: StoreProblem = { text: "the server is away", isTemporary: true, mayBeBrief: true };

// So long that the timer never fires during a test.
const never = 2 ** 30;

const opened: StoreHealth[] = [];
// Reports a permanent problem, after which a store is no longer checked.
afterAll(() => opened.forEach((health) => health.report(damaged)));

/** Opens health whose checks wait until the test resolves them. */
function openHealth({ watchIntervalMs = never, graceMs = 0 } = {}) {
  const checks: PromiseWithResolvers<StoreProblem | undefined>[] = [];
  const requested: (() => void)[] = [];
  const committedFlags: boolean[] = [];
  const limitsMs: number[] = [];
  const findProblem = (hasCommitted: boolean, deadlineMs: number): Promise<StoreProblem | undefined> => {
    const pendingCheck = Promise.withResolvers<StoreProblem | undefined>();
    checks.push(pendingCheck);
    committedFlags.push(hasCommitted);
    limitsMs.push(deadlineMs);
    requested.shift()?.();
    return pendingCheck.promise;
  };
  const health = new StoreHealth({ findProblem, watchIntervalMs, graceMs });
  opened.push(health);
  return {
    health,
    checks,
    committedFlags,
    limitsMs,
    nextCheck: () => new Promise<void>((resolve) => requested.push(resolve)),
  };
}

describe.concurrent("a store's health", () => {
  test("has no problem until one is reported", ({ expect }) => {
    expect(openHealth().health.problem).toBeUndefined();
  });

  test("recovers once a check finds no problem", async ({ expect }) => {
    const { health, checks, nextCheck } = openHealth();
    const first = nextCheck();
    health.report(full);
    expect(health.problem).toBe(full);
    await first;
    const second = nextCheck();
    checks[0]?.resolve(full);
    await second;
    expect(health.problem).toBe(full);
    checks[1]?.resolve(undefined);
    await expect.poll(() => health.problem).toBeUndefined();
  });

  test("keeps the first permanent problem, and never recovers", async ({ expect }) => {
    const { health, checks, nextCheck } = openHealth();
    const first = nextCheck();
    health.report(full);
    await first;
    health.report(damaged);
    checks[0]?.resolve(undefined);
    await nextTurn();
    health.report(full);
    expect(health.problem).toBe(damaged);
  });

  test("is not checked after a permanent problem", async ({ expect }) => {
    const timers = new Set<number>();
    const counting = createHook({
      init: (id, type) => type === "Timeout" && isOpening && timers.add(id),
      destroy: (id) => timers.delete(id),
    }).enable();
    let isOpening = true;
    const { health, checks } = openHealth();
    health.report(full);
    health.report(full);
    isOpening = false;
    expect(timers.size).toBeGreaterThan(0);
    health.report(damaged);
    await expect.poll(() => timers.size).toBe(0);
    counting.disable();
    expect(await health.check()).toBe(false);
    expect(checks).toHaveLength(0);
  });

  test("reports a periodic check's problem, and runs one check at a time", async ({ expect }) => {
    const { health, checks, nextCheck } = openHealth({ watchIntervalMs: 1 });
    await nextCheck();
    // A 2 ms timer that is started now fires after the watch's next interval.
    await new Promise((resolve) => setTimeout(resolve, 2));
    expect(checks).toHaveLength(1);
    const second = nextCheck();
    checks[0]?.resolve(undefined);
    await second;
    checks[1]?.resolve(damaged);
    await expect.poll(() => health.problem).toBe(damaged);
    expect(checks).toHaveLength(2);
  });

  test("reports a brief problem only after the grace period", async ({ expect }) => {
    const { health, checks, nextCheck } = openHealth({ watchIntervalMs: 1, graceMs: never });
    await nextCheck();
    const second = nextCheck();
    checks[0]?.resolve(away);
    await second;
    expect(health.problem).toBeUndefined();
    // A problem that is not brief has no grace period.
    checks[1]?.resolve(full);
    await expect.poll(() => health.problem).toBe(full);

    const withoutGrace = openHealth({ watchIntervalMs: 1, graceMs: 0 });
    await withoutGrace.nextCheck();
    withoutGrace.checks[0]?.resolve(away);
    await expect.poll(() => withoutGrace.health.problem).toBe(away);
  });

  test("is checked only by its timer during the grace period", async ({ expect }) => {
    const { health, checks, nextCheck } = openHealth({ graceMs: never });
    const checkFinding = async (found: StoreProblem | undefined): Promise<boolean> => {
      const checking = health.check();
      checks.at(-1)?.resolve(found);
      return await checking;
    };
    expect(await checkFinding(away)).toBe(false);
    // The problem is already known.
    expect(await health.check()).toBe(false);
    expect(checks).toHaveLength(1);
    health.recordCommit();
    expect(await checkFinding(undefined)).toBe(true);
    expect(await checkFinding(away)).toBe(false);
    const tried = nextCheck();
    expect(checks).toHaveLength(3);
    await tried;
    checks[3]?.resolve(undefined);
    await nextTurn();
    expect(await checkFinding(undefined)).toBe(true);
    expect(checks).toHaveLength(5);
  });

  test("reports the last problem when the grace period ends", async ({ expect }) => {
    const graceMs = 1.5 * retryIntervalMs;
    const { health, checks, limitsMs, nextCheck } = openHealth({ graceMs });
    const begunMs = performance.now();
    const checking = health.check();
    const askedMs = performance.now();
    checks[0]?.resolve(away);
    await checking;
    // The check is a second before the end. Timers fire in the order in which they are due, even if both are late.
    const timeout = new Promise((resolve) => setTimeout(resolve, 0.75 * retryIntervalMs, "timed out"));
    expect(await Promise.race([nextCheck(), timeout])).toBeUndefined();
    expect(health.problem).toBeUndefined();
    checks[1]?.resolve({ ...away, text: "still away" });
    await expect.poll(() => health.problem?.text).toBe("still away");
    // All checks have the same deadline.
    const [first = 0, second] = limitsMs;
    expect(first - graceMs).toBeGreaterThanOrEqual(begunMs);
    expect(first - graceMs).toBeLessThanOrEqual(askedMs);
    expect(second).toBe(first);
    await nextCheck();
    expect(limitsMs[2]).toBeGreaterThan(first + retryIntervalMs);
    const withGrace = openHealth({ graceMs: never });
    withGrace.health.report(full);
    await withGrace.nextCheck();
    withGrace.checks[0]?.resolve(away);
    await expect.poll(() => withGrace.health.problem).toBe(away);
  });

  test("starts a new grace period when a brief problem returns after recovery", async ({ expect }) => {
    const { health, checks, limitsMs, nextCheck } = openHealth({ graceMs: never });
    for (const round of [0, 1]) {
      const checking = health.check();
      checks[2 * round]?.resolve(away);
      await checking;
      expect(health.problem).toBeUndefined();
      await nextCheck();
      checks[2 * round + 1]?.resolve(undefined);
      await nextTurn();
    }
    const [first = 0, firstAgain, second = 0, secondAgain] = limitsMs;
    expect([firstAgain, secondAgain]).toEqual([first, second]);
    expect(second).toBeGreaterThan(first);
    // If the same problem returns after recovery, it is detected again.
    for (const round of [0, 1]) {
      health.report(full);
      await nextCheck();
      checks[4 + round]?.resolve(undefined);
      await expect.poll(() => health.problem).toBeUndefined();
    }
  });

  test("is checked with a write unless a deletion was committed recently", async ({ expect }) => {
    const { health, committedFlags, checks, nextCheck } = openHealth({ watchIntervalMs: 1 });
    await nextCheck();
    expect(health.hasCommittedSince(0)).toBe(false);
    const second = nextCheck();
    checks[0]?.resolve(undefined);
    await second;
    expect(committedFlags).toEqual([false, false]);

    const busy = openHealth();
    busy.health.recordCommit();
    void busy.health.check();
    expect(busy.committedFlags).toEqual([true]);
    // Commits before a problem do not show that the store works again.
    const tried = busy.nextCheck();
    busy.checks[0]?.resolve(full);
    await tried;
    expect(busy.committedFlags).toEqual([true, false]);
  });
});
