import { describe, test } from "vitest";
import { StoreHealth, type StoreProblem, tryIntervalMs } from "../../src/plants/store-health.ts";

const full: StoreProblem = { text: "the disk is full", passing: true };
const damaged: StoreProblem = { text: "the file is damaged", passing: false };

const away: StoreProblem = { text: "the server is away", passing: true, mayBeBrief: true };

// So long that nothing happens by itself in a test.
const never = 2 ** 30;

/** Health whose looks wait until the test says what they find. */
function openHealth({ watchIntervalMs = never, briefMsMax = 0 } = {}) {
  const looks: PromiseWithResolvers<StoreProblem | undefined>[] = [];
  const asked: (() => void)[] = [];
  const knewOfWork: boolean[] = [];
  const findProblem = (hasWorked: boolean): Promise<StoreProblem | undefined> => {
    const look = Promise.withResolvers<StoreProblem | undefined>();
    looks.push(look);
    knewOfWork.push(hasWorked);
    asked.shift()?.();
    return look.promise;
  };
  const health = new StoreHealth({ findProblem, watchIntervalMs, briefMsMax });
  return { health, looks, knewOfWork, nextLook: () => new Promise<void>((resolve) => asked.push(resolve)) };
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
    await looks[0]?.promise;
    health.report(full);
    expect(health.problem).toBe(damaged);
  });

  test("is not looked at any more once it cannot get better", async ({ expect }) => {
    const { health, looks } = openHealth();
    health.report(full);
    health.report(damaged);
    expect(await health.suspect()).toBe(false);
    // A timer that is started now fires after that of the first problem would.
    await new Promise((resolve) => setTimeout(resolve, tryIntervalMs));
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
    const { health, looks, nextLook } = openHealth({ watchIntervalMs: 1, briefMsMax: never });
    await nextLook();
    const second = nextLook();
    looks[0]?.resolve(away);
    await second;
    expect(health.problem).toBeUndefined();
    // What will not pass by itself is not waited for.
    looks[1]?.resolve(full);
    await expect.poll(() => health.problem).toBe(full);

    const impatient = openHealth({ watchIntervalMs: 1, briefMsMax: 0 });
    await impatient.nextLook();
    impatient.looks[0]?.resolve(away);
    await expect.poll(() => impatient.health.problem).toBe(away);
  });

  test("is proved by a write unless the store has worked lately", async ({ expect }) => {
    const { health, knewOfWork, looks, nextLook } = openHealth({ watchIntervalMs: 1 });
    await nextLook();
    expect(health.hasWorkedSince(0)).toBe(false);
    const second = nextLook();
    looks[0]?.resolve(undefined);
    await second;
    expect(knewOfWork).toEqual([false, false]);

    const busy = openHealth({ watchIntervalMs: 200 });
    const work = setInterval(() => busy.health.worked(), 1);
    await busy.nextLook();
    clearInterval(work);
    expect(busy.knewOfWork).toEqual([true]);
    // What worked before a problem proves nothing.
    const tried = busy.nextLook();
    busy.looks[0]?.resolve(full);
    await tried;
    expect(busy.knewOfWork).toEqual([true, false]);
  });
});
