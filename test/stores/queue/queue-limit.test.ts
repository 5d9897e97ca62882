import { describe, expect, test } from "vitest";
import { QueueLimit } from "../../../src/stores/queue/queue-limit.ts";
import {
  batchMax,
  changesAtMs,
  countedFromMs,
  endsAtMs,
  inBursts,
  offer,
  waitingMax,
} from "../../support/plants/model-queue.ts";

type Commit = (size: number, durationMs: number, nowMs: number) => number;

/** Returns a limit, and a function that records a batch and returns the limit after it. */
function createLimit(max: number = waitingMax): { readonly limit: QueueLimit; readonly commit: Commit } {
  const limit = new QueueLimit(max);
  const commit: Commit = (size, durationMs, nowMs) => {
    limit.recordCommit({ size, durationMs, isLast: false }, nowMs);
    return limit.current;
  };
  return { limit, commit };
}

/** As {@link createLimit}, under overload with a limit of 50. */
function createOverloaded(): ReturnType<typeof createLimit> {
  const { limit, commit } = createLimit();
  commit(1, 1.5, 0);
  for (const nowMs of [1_000, 2_000]) commit(200, 100, nowMs);
  return { limit, commit };
}

const burstThenLow = (nowMs: number): number => (nowMs === countedFromMs ? 400_000 : 1_500);
const burstInLowLoad = (nowMs: number): number => (nowMs === changesAtMs ? 2_000_000 : 2_000);

describe("an overloaded store", () => {
  const slow = { commitMs: 1.5, deletionMs: 0.5, inFlightMax: 1 };

  test.each([
    { name: "one batch at a time", store: slow },
    { name: "two batches at a time", store: { commitMs: 1.5, deletionMs: 1, inFlightMax: 2 } },
    { name: "commits of 5 ms", store: { ...slow, commitMs: 5 } },
    { name: "commits of 20 ms", store: { ...slow, commitMs: 20 } },
    { name: "5,000 deletions a second", store: { ...slow, deletionMs: 0.2 } },
  ])("with $name keeps 90 % of its rate without tripling its latency", ({ store }) => {
    const canDoPerS = (store.inFlightMax * 1_000) / store.deletionMs;
    const below = offer(store, () => 0.9 * canDoPerS);
    const above = offer(store, () => 3 * canDoPerS);
    expect(below.refusedPerS).toBe(0);
    expect(above.deletedPerS / canDoPerS).toBeGreaterThan(0.9);
    expect(above.p99Ms / below.p99Ms).toBeLessThan(3);
  });

  test.each([
    { name: "with one batch at a time", store: slow, firstPerS: 1_700 },
    { name: "with two batches at a time", store: { commitMs: 1.5, deletionMs: 1, inFlightMax: 2 }, firstPerS: 1_700 },
    { name: "after a low load", store: slow, firstPerS: 300 },
  ])("$name refuses excess deletions immediately instead of queueing them", ({ store, firstPerS }) => {
    const onset = { fromMs: changesAtMs, toMs: changesAtMs + 2_000 };
    const received = offer(store, (nowMs) => (nowMs < changesAtMs ? firstPerS : 6_000), onset);
    expect(received.refusedP99Ms).toBeLessThan(1);
    expect(received.p99Ms).toBeLessThan(1_000);
  });

  test.each([
    { name: "one batch at a time", store: slow },
    { name: "two batches at a time", store: { commitMs: 1.5, deletionMs: 1, inFlightMax: 2 } },
    { name: "5,000 deletions a second", store: { ...slow, deletionMs: 0.2 } },
    { name: "500 deletions a second", store: { ...slow, deletionMs: 2 } },
    {
      name: "a first batch that waits 100 ms for a connection",
      store: { ...slow, deletionMs: 1, inFlightMax: 2, pauseMs: 100 },
    },
    {
      name: "deletions that become slower",
      store: { ...slow, deletionMs: 0.05, later: { deletionMs: 0.5 } },
      firstPerS: 3_000,
    },
  ])("with $name keeps waits under a second, even at sixfold load", ({ store, firstPerS = 0 }) => {
    const { deletionMs = store.deletionMs } = "later" in store ? store.later : {};
    const canDoPerS = (store.inFlightMax * 1_000) / deletionMs;
    const onset = { fromMs: changesAtMs, toMs: changesAtMs + 2_000 };
    const received = offer(store, (nowMs) => (nowMs < changesAtMs ? firstPerS : 6 * canDoPerS), onset);
    expect(received.p99Ms).toBeLessThan(1_000);
  });

  test.each([
    { name: "deletions become slower", store: { ...slow, later: { deletionMs: 2 } }, firstPerS: 6_000 },
    { name: "a small batch pauses before the overload", store: { ...slow, pauseMs: 300 }, firstPerS: 100 },
  ])("if $name, keeps waits below 100 ms", ({ store, firstPerS }) => {
    expect(offer(store, (nowMs) => (nowMs < changesAtMs + 50 ? firstPerS : 6_000)).p99Ms).toBeLessThan(100);
  });

  test("regains 90 % of its rate after pausing for three seconds", () => {
    expect(offer({ ...slow, pauseMs: 3_000 }, () => 6_000).deletedPerS / 2_000).toBeGreaterThan(0.9);
  });

  const slower = { ...slow, deletionMs: 2 };

  test.each([
    { name: "a load below its rate with bursts", store: slow, later: burstThenLow },
    { name: "no load and then bursts", store: slow, later: inBursts(600, countedFromMs) },
    { name: "bursts with one batch at a time", store: slower, later: inBursts(60, 300) },
    {
      name: "bursts with two batches at a time",
      store: { ...slower, deletionMs: 4, inFlightMax: 2 },
      later: inBursts(60, 300),
    },
  ])("with $name after an overload stops refusing within two seconds", ({ store, later }) => {
    const endedMs = countedFromMs - 2_000;
    expect(offer(store, (nowMs) => (nowMs < endedMs ? 6_000 : later(nowMs)))).toMatchObject({ refusedPerS: 0 });
  });

  test("at most halves its queue limit after a pause, and then restores it", () => {
    const { commit } = createOverloaded();
    // At two plants per millisecond, the store deletes 50 in the planned duration of a batch.
    const limits = [commit(50, 3_000, 2_100), commit(50, 3_000, 2_200), commit(50, 25, 2_300)];
    expect(limits).toEqual([25, 13, 50]);
  });

  test("sends a probe each second under overload, and lowers its limit after a stall", () => {
    const { limit, commit: commitOnly } = createOverloaded();
    const commit: Commit = (size, durationMs, nowMs) => {
      limit.recordRefusal(nowMs);
      return commitOnly(size, durationMs, nowMs);
    };
    for (let stalled = 0; stalled < 8; stalled++) commit(1, 300, 2_100);
    const stalledLimit = commit(1_000, 500, 3_000);
    commit(1_000, 500, 3_200);
    expect(limit.planBatch()).toBe(1);
    expect({ stalledLimit, limit: commit(1, 1.5, 3_300) }).toEqual({ stalledLimit: 4_608, limit: 50 });
    expect(limit.planBatch()).toBeGreaterThan(1);
  });

  test.each([
    { name: "short", durationMs: 25, expected: [50, 50, waitingMax] },
    { name: "late", durationMs: 100, expected: [50, 50, 50] },
  ])("after $name batches, checks for overload a second after the last refusal", ({ durationMs, expected }) => {
    const { commit } = createOverloaded();
    expect([2_005, 2_900, 3_001].map((nowMs) => commit(2 * durationMs, durationMs, nowMs))).toEqual(expected);
  });
});

describe("a store below its maximum rate", () => {
  const quick = { commitMs: 1.5, deletionMs: 0.015, inFlightMax: 1 };

  test.each([
    { name: "with large batches", store: quick, perS: 30_000 },
    { name: "with batches of more than 25 ms", store: { ...quick, deletionMs: 0.06 }, perS: 15_800 },
    { name: "with slow commits", store: { ...quick, commitMs: 40 }, perS: 5_000 },
    {
      name: "with small commits near its maximum rate",
      store: { ...quick, commitMs: 0.1, deletionMs: 0.11 },
      perS: 8_900,
    },
    { name: "with commits that suddenly take 40 ms", store: { ...quick, later: { commitMs: 40 } }, perS: 5_000 },
    { name: "with commits that suddenly take 200 ms", store: { ...quick, later: { commitMs: 200 } }, perS: 5_000 },
    { name: "with a pause of three seconds", store: { ...quick, commitMs: 4, pauseMs: 3_000 }, perS: 5_000 },
  ])("$name refuses no deletion", ({ store, perS }) => {
    expect(offer(store, () => perS)).toMatchObject({ refusedPerS: 0 });
  });

  const always = { fromMs: 0, toMs: endsAtMs };

  test.each([
    { name: "a pause of three seconds", store: { ...quick, commitMs: 4, pauseMs: 3_000 }, perS: 5_000 },
    { name: "a pause of two batches", store: { ...quick, commitMs: 4, pauseMs: 3_000, inFlightMax: 2 }, perS: 5_000 },
    { name: "a pause of 200 ms in a slow store", store: { ...quick, deletionMs: 0.2, pauseMs: 200 }, perS: 4_000 },
  ])("with $name refuses no deletion, even during the pause", ({ store, perS }) => {
    expect(offer(store, () => perS, always)).toMatchObject({ refusedPerS: 0 });
  });

  const slow = { ...quick, deletionMs: 0.5 };

  test.each([
    { name: "every second", store: slow, perSAt: inBursts(600, 1_000) },
    { name: "every two seconds", store: slow, perSAt: inBursts(600, 2_000) },
    {
      name: "every second, with two batches at a time,",
      store: { ...slow, deletionMs: 1, inFlightMax: 2 },
      perSAt: inBursts(600, 1_000),
    },
    {
      name: "every half second, even when commits become faster,",
      store: { ...quick, deletionMs: 1.5, later: { deletionMs: 0.015 } },
      perSAt: inBursts(300, 500),
    },
  ])("with large bursts $name refuses no deletion", ({ store, perSAt }) => {
    expect(offer(store, perSAt, always)).toMatchObject({ refusedPerS: 0 });
  });

  test("refuses no deletion in a burst that takes a quarter second", () => {
    const store = { commitMs: 1.5, deletionMs: 0.25, inFlightMax: 1 };
    expect(offer(store, burstInLowLoad, always)).toMatchObject({ refusedPerS: 0 });
  });

  test.each([
    { commit: "4 to 8 ms", durationsMs: [4, 4.5, 9] },
    { commit: "40 to 90 ms", durationsMs: [40, 41, 90] },
  ])("with commits of $commit keeps its limit after a slower large batch", ({ durationsMs }) => {
    const { limit, commit } = createLimit();
    for (const [i, durationMs] of durationsMs.entries()) commit([1, 9, 20][i] ?? 0, durationMs, 100 * i);
    expect({ kept: limit.kept, current: limit.current }).toEqual({ kept: waitingMax, current: waitingMax });
  });

  const lone = { size: 1, durationMs: 1.5, isLast: false };
  const late = { size: 200, durationMs: 100, isLast: false };

  test.each([
    { name: "fast batches", between: lone },
    { name: "a pause and an idle queue", between: { ...lone, durationMs: 100, isLast: true } },
  ])("keeps its limit with $name between two late batches", ({ between }) => {
    const limit = new QueueLimit(waitingMax);
    for (let s = 0; s < 8; s += 1) limit.recordCommit(lone, s * 1_000);
    limit.recordCommit(late, 8_000);
    limit.recordCommit(between, 9_000);
    limit.recordCommit(late, 3_600_000);
    expect(limit.current).toBe(waitingMax);
  });
});

test("long batches limit the queue to half a second of work", () => {
  const { limit, commit } = createLimit();
  commit(1, 1, 0);
  for (let nowMs = 0; nowMs < 900; nowMs += 100) commit(200, 100, nowMs);
  expect({ kept: limit.kept, current: limit.current }).toEqual({ kept: 1_000, current: 1_000 });
});

test("batches are small again after ten single deletions", () => {
  const limit = new QueueLimit(waitingMax);
  const sizes = [512, ...Array.from({ length: 10 }, () => 1)];
  for (const [i, size] of sizes.entries()) limit.recordCommit({ size, durationMs: 2, isLast: true }, i);
  expect(limit.planBatch()).toBe(2);
});

test("the limit never exceeds its maximum, even under overload", () => {
  const { limit, commit } = createLimit(100);
  commit(1, 1, 0);
  const limits = [100, 200, 1_200].map((nowMs) => {
    const current = commit(200, 100, nowMs);
    return { kept: limit.kept, current };
  });
  // Two plants per millisecond are 50 in the planned duration of a batch, which is the limit under overload.
  expect(limits).toEqual([
    { kept: 100, current: 100 },
    { kept: 100, current: 100 },
    { kept: 100, current: 50 },
  ]);
});

test("small batches with slow commits lower the limit to 256 deletions", () => {
  const { limit, commit } = createLimit();
  commit(1, 1, 0);
  for (const nowMs of [100, 200, 300]) commit(10, 100, nowMs);
  expect({ kept: limit.kept, current: limit.current }).toEqual({ kept: 256, current: 256 });
});

/** As {@link createLimit}, after a batch that took 100 ms with commits of a millisecond. */
function createLate(): ReturnType<typeof createLimit> {
  const { limit, commit } = createLimit();
  commit(1, 1, 0);
  commit(200, 100, 1_000);
  return { limit, commit };
}

describe("a probe", () => {
  test("is sent once after a long batch", () => {
    const { limit } = createLate();
    expect([limit.planBatch(), limit.planBatch()]).toEqual([1, 400]);
  });

  test("is sent at most four times while commits are slow", () => {
    const { limit, commit } = createLate();
    const planned = Array.from({ length: 5 }, (_, i) => {
      const max = limit.planBatch();
      if (max === 1) commit(1, 100, 1_100 + i);
      return max;
    });
    expect(planned).toEqual([1, 1, 1, 1, 400]);
    for (const nowMs of [2_200, 3_300]) commit(200, 100, nowMs);
    expect(limit.current).toBe(waitingMax);
  });

  test("does not interrupt a series of late batches", () => {
    const { limit, commit } = createLate();
    limit.planBatch();
    commit(1, 1, 1_001);
    commit(200, 100, 1_500);
    expect(limit.kept).toBe(1_000);
    commit(1, 1, 1_501);
    commit(200, 100, 2_100);
    expect(limit.kept).toBe(waitingMax);
  });
});

test.each([
  { effect: "keeps", durationMs: 3, expected: 50 },
  { effect: "raises", durationMs: 3.1, expected: 72 },
])("a probe of $durationMs ms $effect the limit after a commit of 1.5 ms", ({ durationMs, expected }) => {
  const { limit, commit } = createOverloaded();
  limit.planBatch();
  expect(commit(1, durationMs, 2_100)).toBe(expected);
});

test("a small late batch does not end the overload", () => {
  const { limit, commit } = createLimit();
  commit(1, 2, 10_000);
  for (let times = 0; times < 3; times++) commit(batchMax, 10, 10_000);
  commit(100, 1_000, 11_000);
  commit(1, 1_000, 11_500);
  commit(100, 1_000, 12_100);
  expect(limit.current).toBeLessThan(waitingMax);
});

test("a pause after a first large batch does not lower the limit", () => {
  const { limit, commit } = createLimit();
  commit(9, 1, 0);
  commit(18, 1_000, 1_000);
  expect(limit.kept).toBe(waitingMax);
});
