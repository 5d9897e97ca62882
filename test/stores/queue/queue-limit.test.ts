import { describe, expect, test } from "vitest";
import { QueueLimit } from "../../../src/stores/queue/queue-limit.ts";

/** A modelled store, in milliseconds. */
interface ModelStore {
  /** A commit's duration without deletions. */
  readonly commitMs: number;
  /** The additional duration per deletion. */
  readonly deletionMs: number;
  readonly inFlightMax: number;
  /** Changes from {@link changesAtMs} on. */
  readonly later?: { readonly commitMs?: number; readonly deletionMs?: number };
  /** The pause for the first batches from then on, as many as are committed at the same time. */
  readonly pauseMs?: number;
}

/** What callers observe. */
interface Seen {
  readonly deletedPerS: number;
  readonly refusedPerS: number;
  readonly p99Ms: number;
  /** How long refused deletions had waited. */
  readonly refusedP99Ms: number;
}

/** When deletions are counted, in milliseconds. */
interface Counted {
  readonly fromMs: number;
  readonly toMs: number;
}

const waitingMax = 16_384;
const batchMax = 1_024;

// The model's time step, in milliseconds. Deletions are counted once the limit has settled.
const stepMs = 0.5;
const changesAtMs = 2_000;
const countedFromMs = 8_000;
const endsAtMs = 12_000;

/** A batch that is being committed, and when each of its deletions arrived. */
interface Batch {
  readonly sentMs: number;
  readonly untilMs: number;
  readonly came: readonly number[];
}

/** Simulates a queue and a store with a simulated clock. */
class ModelQueue {
  readonly refusedMs: number[] = [];
  readonly latenciesMs: number[] = [];
  readonly #store: ModelStore;
  readonly #limit = new QueueLimit(waitingMax);
  readonly #waiting: number[] = [];
  #inFlight: Batch[] = [];
  #pausesLeft: number;
  readonly #counted: Counted;

  constructor(store: ModelStore, counted: Counted) {
    this.#store = store;
    this.#counted = counted;
    this.#pausesLeft = store.inFlightMax;
  }

  get isBusy(): boolean {
    return this.#inFlight.length > 0;
  }

  come(nowMs: number): void {
    if (this.#inFlight.length < this.#store.inFlightMax) this.#send([nowMs], nowMs);
    else if (this.#waiting.length < this.#limit.current) this.#waiting.push(nowMs);
    else this.#refuse(nowMs, nowMs);
  }

  step(nowMs: number): void {
    for (const batch of this.#inFlight.filter(({ untilMs }) => untilMs <= nowMs)) {
      this.#end(batch, nowMs);
      this.#inFlight = this.#inFlight.filter((other) => other !== batch);
      if (this.#waiting.length > 0)
        this.#send(this.#waiting.splice(0, Math.min(batchMax, this.#limit.batchMax)), nowMs);
    }
  }

  #send(came: readonly number[], nowMs: number): void {
    this.#inFlight.push({ sentMs: nowMs, untilMs: nowMs + this.#durationMs(came.length, nowMs), came });
  }

  #end({ sentMs, untilMs, came }: Batch, nowMs: number): void {
    const ended = {
      size: came.length,
      durationMs: untilMs - sentMs,
      isLast: this.#inFlight.length === 1 && this.#waiting.length === 0,
    };
    this.#limit.recordCommit(ended, nowMs);
    for (const cameMs of this.#waiting.splice(this.#limit.kept)) this.#refuse(cameMs, nowMs);
    for (const cameMs of came) if (this.#counts(cameMs)) this.latenciesMs.push(nowMs - cameMs);
  }

  #refuse(cameMs: number, nowMs: number): void {
    this.#limit.recordRefusal(nowMs);
    if (this.#counts(cameMs)) this.refusedMs.push(nowMs - cameMs);
  }

  #counts(cameMs: number): boolean {
    return cameMs >= this.#counted.fromMs && cameMs < this.#counted.toMs;
  }

  #durationMs(size: number, nowMs: number): number {
    const { pauseMs = 0, later } = this.#store;
    const hasChanged = nowMs >= changesAtMs;
    const { commitMs, deletionMs } = hasChanged ? { ...this.#store, ...later } : this.#store;
    const pausesNow = hasChanged && this.#pausesLeft > 0;
    if (pausesNow) this.#pausesLeft -= 1;
    return commitMs + size * deletionMs + (pausesNow ? pauseMs : 0);
  }
}

const settled: Counted = { fromMs: countedFromMs, toMs: endsAtMs };

/** Sends deletions at a constant rate, and returns the results of those that are counted. */
function offer(store: ModelStore, perSAt: (nowMs: number) => number, counted: Counted = settled): Seen {
  const queue = new ModelQueue(store, counted);
  let due = 0;
  for (let nowMs = 0; nowMs < endsAtMs || queue.isBusy; nowMs += stepMs) {
    if (nowMs < endsAtMs) due += (perSAt(nowMs) * stepMs) / 1_000;
    for (; due >= 1; due -= 1) queue.come(nowMs);
    queue.step(nowMs);
  }
  const { latenciesMs, refusedMs } = queue;
  const seconds = (counted.toMs - counted.fromMs) / 1_000;
  return {
    deletedPerS: latenciesMs.length / seconds,
    refusedPerS: refusedMs.length / seconds,
    p99Ms: p99Of(latenciesMs),
    refusedP99Ms: p99Of(refusedMs),
  };
}

function p99Of(sample: readonly number[]): number {
  return sample.toSorted((a, b) => a - b)[Math.floor(sample.length * 0.99)] ?? Number.NaN;
}

function inBursts(size: number, everyMs: number): (nowMs: number) => number {
  return (nowMs) => (nowMs % everyMs === 0 ? (size * 1_000) / stepMs : 0);
}

describe("a store under triple load", () => {
  const slow = { commitMs: 1.5, deletionMs: 0.5, inFlightMax: 1 };

  test.each([
    { name: "one batch at a time", store: slow },
    { name: "two batches at a time", store: { commitMs: 1.5, deletionMs: 1, inFlightMax: 2 } },
    { name: "commits of 5 ms", store: { ...slow, commitMs: 5 } },
    { name: "commits of 20 ms", store: { ...slow, commitMs: 20 } },
    { name: "5,000 deletions a second", store: { ...slow, deletionMs: 0.2 } },
  ])("with $name keeps 90 % of its rate and at most tripled latency", ({ store }) => {
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

  const many = (nowMs: number): number => (nowMs === countedFromMs ? 400_000 : 1_500);
  const slower = { ...slow, deletionMs: 2 };

  test.each([
    { name: "a load below its rate with bursts", store: slow, later: many },
    { name: "no load and then bursts", store: slow, later: inBursts(600, countedFromMs) },
    { name: "bursts with one batch at a time", store: slower, later: inBursts(60, 300) },
    {
      name: "bursts with two batches at a time",
      store: { ...slower, deletionMs: 4, inFlightMax: 2 },
      later: inBursts(60, 300),
    },
  ])("if an overload is followed by $name, stops refusing within two seconds", ({ store, later }) => {
    const endedMs = countedFromMs - 2_000;
    expect(offer(store, (nowMs) => (nowMs < endedMs ? 6_000 : later(nowMs)))).toMatchObject({ refusedPerS: 0 });
  });

  const lone = { size: 1, durationMs: 1.5, isLast: false };

  test("doubles its limit after a pause until its rate is measurable", () => {
    const limit = new QueueLimit(waitingMax);
    const commit = (batch: { readonly size: number; readonly durationMs: number }, nowMs: number): number => {
      limit.recordRefusal(nowMs);
      limit.recordCommit({ ...batch, isLast: false }, nowMs);
      return limit.current;
    };
    limit.recordCommit(lone, 0);
    for (let s = 1; s < 4; s += 1) commit({ size: 200, durationMs: 100 }, s * 1_000);
    for (let s = 4; s < 8; s += 1) commit({ size: 12, durationMs: 1_000 }, s * 1_000);
    expect(limit.current).toBe(1);
    const rooms = Array.from({ length: 8 }, (_, ms) => commit(lone, 8_000 + ms));
    expect(rooms).toEqual([1, 2, 3, 5, 10, 20, 20, 20]);
  });

  test("remains overloaded for a second after its last refusal", () => {
    const limit = new QueueLimit(waitingMax);
    const late = { size: 200, durationMs: 100, isLast: false };
    const commit = (batch: typeof late, nowMs: number): number => {
      limit.recordCommit(batch, nowMs);
      return limit.current;
    };
    // At two plants per millisecond, the store deletes 50 in the time that a batch may take, and 500 in a quarter of a
    // second.
    expect([
      commit(lone, 0),
      commit(late, 1_000),
      commit(late, 2_000),
      commit(late, 2_005),
      commit(late, 3_010),
      commit(late, 3_500),
      commit(lone, 4_501),
    ]).toEqual([waitingMax, waitingMax, 50, 50, 500, 500, waitingMax]);
  });
});

describe("a store that keeps up", () => {
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
    const offeredPerS = (nowMs: number): number => (nowMs === changesAtMs ? 2_000_000 : 2_000);
    expect(offer(store, offeredPerS, always)).toMatchObject({ refusedPerS: 0 });
  });

  test.each([
    { commit: "4 to 8 ms", durationsMs: [4, 4.5, 9] },
    { commit: "40 to 90 ms", durationsMs: [40, 41, 90] },
  ])("with commits of $commit keeps its limit after a slower large batch", ({ durationsMs }) => {
    const limit = new QueueLimit(waitingMax);
    for (const [i, durationMs] of durationsMs.entries()) {
      limit.recordCommit({ size: [1, 9, 20][i] ?? 0, durationMs, isLast: false }, 100 * i);
    }
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

test("a late batch lowers the limit only for new deletions", () => {
  const limit = new QueueLimit(waitingMax);
  limit.recordCommit({ size: 1, durationMs: 1, isLast: false }, 0);
  const late = { size: 200, durationMs: 100, isLast: false };
  for (let nowMs = 0; nowMs < 900; nowMs += 100) limit.recordCommit(late, nowMs);
  expect({ kept: limit.kept, current: limit.current }).toEqual({ kept: 1_500, current: 500 });
});

test("a small late batch does not end the overload", () => {
  const limit = new QueueLimit(waitingMax);
  const commit = (size: number, durationMs: number, nowMs: number): void =>
    limit.recordCommit({ size, durationMs, isLast: false }, nowMs);
  commit(1, 2, 10_000);
  for (let times = 0; times < 3; times++) commit(batchMax, 10, 10_000);
  commit(100, 1_000, 11_000);
  commit(1, 1_000, 11_500);
  commit(100, 1_000, 12_100);
  expect(limit.current).toBeLessThan(waitingMax);
});

test("a pause after a first large batch does not lower the limit", () => {
  const limit = new QueueLimit(waitingMax);
  limit.recordCommit({ size: 9, durationMs: 1, isLast: false }, 0);
  limit.recordCommit({ size: 18, durationMs: 1_000, isLast: false }, 1_000);
  expect(limit.kept).toBe(waitingMax);
});
