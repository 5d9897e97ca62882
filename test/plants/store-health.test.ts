import { describe, test } from "vitest";
import { StoreHealth, type StoreProblem } from "../../src/plants/store-health.ts";

const full: StoreProblem = { text: "the disk is full", passing: true };
const damaged: StoreProblem = { text: "the file is damaged", passing: false };

/** Health whose looks wait until the test says what they find. */
function openHealth(watchIntervalMs?: number) {
  const looks: PromiseWithResolvers<StoreProblem | undefined>[] = [];
  const asked: (() => void)[] = [];
  const health = new StoreHealth(() => {
    const look = Promise.withResolvers<StoreProblem | undefined>();
    looks.push(look);
    asked.shift()?.();
    return look.promise;
  }, watchIntervalMs);
  return { health, looks, nextLook: () => new Promise<void>((resolve) => asked.push(resolve)) };
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

  test("gets worse when a watch finds something wrong, which is looked for once at a time", async ({ expect }) => {
    const { health, looks, nextLook } = openHealth(1);
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
});
