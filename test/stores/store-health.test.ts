import { createHook } from "node:async_hooks";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterAll, describe, test } from "vitest";
import { StoreHealth, type StoreProblem, retryIntervalMs } from "../../src/stores/store-health.ts";

const full: StoreProblem = { text: "the disk is full", isTemporary: true };
const damaged: StoreProblem = { text: "the file is damaged", isTemporary: false };

const away: StoreProblem = { text: "the server is away", isTemporary: true, mayBeBrief: true };

// So long that nothing happens by itself in a test.
const never = 2 ** 30;

const opened: StoreHealth[] = [];
// Of what is damaged, nobody looks whether it is good again.
afterAll(() => opened.forEach((health) => health.report(damaged)));

/** Health whose looks wait until the test says what they find. */
function openHealth({ watchIntervalMs = never, graceMs = 0 } = {}) {
  const looks: PromiseWithResolvers<StoreProblem | undefined>[] = [];
  const asked: (() => void)[] = [];
  const knewOfWork: boolean[] = [];
  const limitsMs: number[] = [];
  const findProblem = (hasCommitted: boolean, deadlineMs: number): Promise<StoreProblem | undefined> => {
    const look = Promise.withResolvers<StoreProblem | undefined>();
    looks.push(look);
    knewOfWork.push(hasCommitted);
    limitsMs.push(deadlineMs);
    asked.shift()?.();
    return look.promise;
  };
  const health = new StoreHealth({ findProblem, watchIntervalMs, graceMs });
  opened.push(health);
  return { health, looks, knewOfWork, limitsMs, nextLook: () => new Promise<void>((resolve) => asked.push(resolve)) };
}

describe.concurrent("the health of a store", () => {
  test("is good until something is reported", ({ expect }) => {
    expect(openHealth().health.problem).toBeUndefined();
  });

  test("is good again once a look finds nothing wrong", async ({ expect }) => {
    const { health, looks, nextLook } = openHealth();
    const first = nextLook();
    health.report(full);
    expect(health.problem).toBe(full);
    await first;
    const second = nextLook();
    looks[0]?.resolve(full);
    await second;
    expect(health.problem).toBe(full);
    looks[1]?.resolve(undefined);
    await expect.poll(() => health.problem).toBeUndefined();
  });

  test("never gets better from what cannot pass, and keeps the first reason", async ({ expect }) => {
    const { health, looks, nextLook } = openHealth();
    const first = nextLook();
    health.report(full);
    await first;
    health.report(damaged);
    looks[0]?.resolve(undefined);
    await nextTurn();
    health.report(full);
    expect(health.problem).toBe(damaged);
  });

  test("is not looked at any more once it cannot get better", async ({ expect }) => {
    const timers = new Set<number>();
    const counting = createHook({
      init: (id, type) => type === "Timeout" && isOpening && timers.add(id),
      destroy: (id) => timers.delete(id),
    }).enable();
    let isOpening = true;
    const { health, looks } = openHealth();
    health.report(full);
    health.report(full);
    isOpening = false;
    expect(timers.size).toBeGreaterThan(0);
    health.report(damaged);
    await expect.poll(() => timers.size).toBe(0);
    counting.disable();
    expect(await health.check()).toBe(false);
    expect(looks).toHaveLength(0);
  });

  test("gets worse when a watch finds something wrong, which is looked for once at a time", async ({ expect }) => {
    const { health, looks, nextLook } = openHealth({ watchIntervalMs: 1 });
    await nextLook();
    // A timer that is started now fires after the watch's next interval.
    await new Promise((resolve) => setTimeout(resolve, 2));
    expect(looks).toHaveLength(1);
    const second = nextLook();
    looks[0]?.resolve(undefined);
    await second;
    looks[1]?.resolve(damaged);
    await expect.poll(() => health.problem).toBe(damaged);
    expect(looks).toHaveLength(2);
  });

  test("stays good while what a watch has found may still pass, and gets worse when it has lasted", async ({
    expect,
  }) => {
    const { health, looks, nextLook } = openHealth({ watchIntervalMs: 1, graceMs: never });
    await nextLook();
    const second = nextLook();
    looks[0]?.resolve(away);
    await second;
    expect(health.problem).toBeUndefined();
    // What will not pass by itself is not waited for.
    looks[1]?.resolve(full);
    await expect.poll(() => health.problem).toBe(full);

    const impatient = openHealth({ watchIntervalMs: 1, graceMs: 0 });
    await impatient.nextLook();
    impatient.looks[0]?.resolve(away);
    await expect.poll(() => impatient.health.problem).toBe(away);
  });

  test("is looked at again while a problem may pass by its own tries alone, until one finds nothing or it works", async ({
    expect,
  }) => {
    const { health, looks, nextLook } = openHealth({ graceMs: never });
    const look = async (found: StoreProblem | undefined): Promise<boolean> => {
      const suspected = health.check();
      looks.at(-1)?.resolve(found);
      return await suspected;
    };
    expect(await look(away)).toBe(false);
    // It knows already.
    expect(await health.check()).toBe(false);
    expect(looks).toHaveLength(1);
    health.recordCommit();
    expect(await look(undefined)).toBe(true);
    expect(await look(away)).toBe(false);
    const tried = nextLook();
    expect(looks).toHaveLength(3);
    await tried;
    looks[3]?.resolve(undefined);
    await nextTurn();
    expect(await look(undefined)).toBe(true);
    expect(looks).toHaveLength(5);
  });

  test("is bad once what may pass has lasted, and for the reason that is found last", async ({ expect }) => {
    const graceMs = 1.5 * retryIntervalMs;
    const { health, looks, limitsMs, nextLook } = openHealth({ graceMs });
    const begunMs = performance.now();
    const suspected = health.check();
    const askedMs = performance.now();
    looks[0]?.resolve(away);
    await suspected;
    // A second before the end. Of two timers, the one that is due first fires first, however late both are.
    const tooLate = new Promise((resolve) => setTimeout(resolve, 0.75 * retryIntervalMs, "too late"));
    expect(await Promise.race([nextLook(), tooLate])).toBeUndefined();
    expect(health.problem).toBeUndefined();
    looks[1]?.resolve({ ...away, text: "still away" });
    await expect.poll(() => health.problem?.text).toBe("still away");
    // All looks have one deadline together.
    const [first = 0, second] = limitsMs;
    expect(first - graceMs).toBeGreaterThanOrEqual(begunMs);
    expect(first - graceMs).toBeLessThanOrEqual(askedMs);
    expect(second).toBe(first);
    await nextLook();
    expect(limitsMs[2]).toBeGreaterThan(first + retryIntervalMs);
    const patient = openHealth({ graceMs: never });
    patient.health.report(full);
    await patient.nextLook();
    patient.looks[0]?.resolve(away);
    await expect.poll(() => patient.health.problem).toBe(away);
  });

  test("is waited for as long again when what may pass comes back after it has passed", async ({ expect }) => {
    const { health, looks, limitsMs, nextLook } = openHealth({ graceMs: never });
    for (const round of [0, 1]) {
      const suspected = health.check();
      looks[2 * round]?.resolve(away);
      await suspected;
      expect(health.problem).toBeUndefined();
      await nextLook();
      looks[2 * round + 1]?.resolve(undefined);
      await nextTurn();
    }
    const [first = 0, firstAgain, second = 0, secondAgain] = limitsMs;
    expect([firstAgain, secondAgain]).toEqual([first, second]);
    expect(second).toBeGreaterThan(first);
    // One that was reported, and is over, is noticed again, too.
    for (const round of [0, 1]) {
      health.report(full);
      await nextLook();
      looks[4 + round]?.resolve(undefined);
      await expect.poll(() => health.problem).toBeUndefined();
    }
  });

  test("is proved by a write unless the store has worked lately", async ({ expect }) => {
    const { health, knewOfWork, looks, nextLook } = openHealth({ watchIntervalMs: 1 });
    await nextLook();
    expect(health.hasCommittedSince(0)).toBe(false);
    const second = nextLook();
    looks[0]?.resolve(undefined);
    await second;
    expect(knewOfWork).toEqual([false, false]);

    const busy = openHealth();
    busy.health.recordCommit();
    void busy.health.check();
    expect(busy.knewOfWork).toEqual([true]);
    // What worked before a problem proves nothing.
    const tried = busy.nextLook();
    busy.looks[0]?.resolve(full);
    await tried;
    expect(busy.knewOfWork).toEqual([true, false]);
  });
});
