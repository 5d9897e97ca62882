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

/** Maximum number of deletions in the queue, while the store keeps up. */
export const waitingMax = 16_384;

/** Maximum number of deletions in a batch. */
export const batchMax = 1_024;

/** The model's time step, in milliseconds. */
const stepMs = 0.5;

/** When the store changes or pauses, in milliseconds. */
export const changesAtMs = 2_000;

/** From when on deletions are counted by default, in milliseconds. The limit has then settled. */
export const countedFromMs = 8_000;

/** When the last deletions arrive, in milliseconds. */
export const endsAtMs = 12_000;

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
        this.#send(this.#waiting.splice(0, Math.min(batchMax, this.#limit.planBatch())), nowMs);
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
export function offer(store: ModelStore, perSAt: (nowMs: number) => number, counted: Counted = settled): Seen {
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

/** Returns a rate per second that is one burst of this size at each interval. */
export function inBursts(size: number, everyMs: number): (nowMs: number) => number {
  return (nowMs) => (nowMs % everyMs === 0 ? (size * 1_000) / stepMs : 0);
}
