import { createHook } from "node:async_hooks";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterAll, describe, test } from "vitest";
import { StoreHealth, type StoreProblem } from "../../../../../src/stores/contract/store-health.ts";

const full: StoreProblem = { text: "the disk is full", isTemporary: true };
const damaged: StoreProblem = { text: "the file is damaged", isTemporary: false };
// So long that the timer never fires during a test.
const never = 2 ** 30;

const opened: StoreHealth[] = [];
// Reports a permanent problem, after which a store is no longer checked.
afterAll(() => opened.forEach((health) => health.report(damaged)));

/** Opens health whose checks wait until the test resolves them. */
function openHealth({ watchIntervalMs = never } = {}) {
  const checks: PromiseWithResolvers<StoreProblem | undefined>[] = [];
  const requested: (() => void)[] = [];
  const committedFlags: boolean[] = [];
  const findProblem = (hasCommitted: boolean): Promise<StoreProblem | undefined> => {
    const pendingCheck = Promise.withResolvers<StoreProblem | undefined>();
    checks.push(pendingCheck);
    committedFlags.push(hasCommitted);
    requested.shift()?.();
    return pendingCheck.promise;
  };
  const health = new StoreHealth({ findProblem, watchIntervalMs });
  opened.push(health);
  return { health, checks, committedFlags, nextCheck: () => new Promise<void>((resolve) => requested.push(resolve)) };
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
    await health.check();
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

  test("is only checked by its timer while a problem is known", async ({ expect }) => {
    const { health, checks, nextCheck } = openHealth();
    health.report(full);
    await health.check();
    expect(checks).toHaveLength(0);
    await nextCheck();
    checks[0]?.resolve(undefined);
    await expect.poll(() => health.problem).toBeUndefined();
    // The same problem is detected again.
    const checking = health.check();
    checks[1]?.resolve(full);
    await checking;
    expect(health.problem).toBe(full);
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
