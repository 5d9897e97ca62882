/** The most deletions in a small batch, which takes about as long as a commit. */
const smallBatchMax = 8;

/** The durations of this many small batches are kept. The shortest counts, so that a single pause has no effect. */
const commitTimesKept = 8;

/** A batch that takes at most this many milliseconds is never late. With the batch before it, callers wait 50 ms. */
const batchMsMin = 25;

/** A batch's longest duration, in commits. A commit is then less than a tenth of the batch. */
const commitsPerBatch = 12;

/** Milliseconds per deletion above which a store is slow. A faster store empties a full queue in one or two seconds. */
const slowDeletionMs = 0.1;

/**
 * CoDel's interval, in milliseconds. If all batches were late for so long, the store is overloaded, and has not only
 * paused. Overload ends when no deletion was refused for as long, or when the store is idle. A late batch lowers the
 * limit for as long.
 */
const intervalMs = 1_000;

/** The rates of this many larger batches are kept: few, to notice a slower store soon. The highest counts. */
const ratesKept = 4;

/** The fewest rates with which a batch is compared: more than two, because one pause can lower two. */
const ratesKnownMin = 3;

/** How fast the first batches grow, so that their rates are known before many deletions are queued. */
const growthMax = 4;

/** The longest wait before overload is certain, in milliseconds: as after a burst or a few slow commits. */
const burstMs = 250;

/** The longest wait once the store's rate is known, in milliseconds: with the time until then, under a second. */
const keptMs = 750;

/**
 * A long batch that is at least this many times as large as the one before, but has about the same rate, shows the
 * store's rate. Neither a pause nor a commit's duration would be proportional to the size.
 */
const growthMin = 2;

/** A long batch takes more than this many commits. Shorter ones vary as single commits do. */
const longCommits = 3;

/** The factor by which such a batch's rate may be higher. The rate may be half as high, because rates vary. */
const rateRiseMax = 1.5;

/** A batch that is durable. */
interface Committed {
  readonly size: number;
  readonly durationMs: number;
  /** Whether the store is idle after this batch, because no deletion waits and no other batch is being committed. */
  readonly isLast: boolean;
}

/**
 * Decides how many deletions may wait for a batch, by Little's law: the store's rate times the longest wait.
 *
 * Normally the limit is the number that fits into memory. If the store cannot keep up, it is the number that the store
 * deletes in a batch's longest duration. A longer queue would delay all callers without any gain, since larger batches
 * would take longer and not be more efficient. As in CoDel (RFC 8289), overload is detected by the queue's delay, and
 * only if the delay persists for an interval.
 *
 * The detection takes a second to detect overload. Meanwhile, thousands of deletions would be queued, only to be
 * refused afterwards. So as soon as a growing batch shows the store's rate, the limit is the number that the store
 * deletes in three quarters of a second. As soon as a batch is late although the store is as fast as before, which
 * indicates load rather than a pause, it is a third of this number.
 *
 * A store that is idle between bursts counts as keeping up, even if a burst takes long.
 */
export class QueueLimit {
  /** The most deletions that may wait. Further ones are refused. Only {@link recordCommit} changes it. */
  current: number;
  /** How many queued deletions may stay. Only {@link recordCommit} changes it. */
  kept: number;
  readonly #max: number;
  readonly #commitsMs: number[] = [];
  #ratesPerMs: number[] = [];
  /** The last large batch's size. */
  #lastSize = smallBatchMax;
  /** When a growing batch has last shown the store's rate. */
  #rateKnownAtMs = -Infinity;
  #lateSinceMs: number | undefined;
  #lastLateAtMs = -Infinity;
  #isOverloaded = false;
  #refusedAtMs = 0;

  /** @param max - the limit while the store keeps up */
  constructor(max: number) {
    this.#max = this.current = this.kept = max;
  }

  /** The most deletions in the next batch: few while the limit is lowered, because the deletions in it also wait. */
  get batchMax(): number {
    if (this.#ratesPerMs.length < ratesKnownMin) return growthMax * this.#lastSize;
    if (this.kept === this.#max) return Number.POSITIVE_INFINITY;
    return Math.max(smallBatchMax, this.#capacityIn(Math.max(burstMs, this.#batchMsMax)));
  }

  recordRefusal(nowMs: number): void {
    this.#refusedAtMs = nowMs;
  }

  /** Records that a batch is durable. Its duration includes retries. */
  recordCommit(batch: Committed, nowMs: number): void {
    if (nowMs - this.#refusedAtMs > intervalMs) this.#isOverloaded = false;
    if (batch.size <= smallBatchMax) this.#recordSmallBatch(batch.durationMs);
    else this.#recordLargeBatch(batch, nowMs);
    if (batch.isLast) this.#reset();
    const burstCapacity = this.#capacityIn(Math.max(burstMs, this.#batchMsMax));
    if (this.#isOverloaded) {
      this.kept = this.#capacityIn(Math.max(keptMs, this.#batchMsMax));
      this.current = this.#capacityIn(this.#batchMsMax);
    } else {
      const isRateKnown = nowMs - Math.max(this.#rateKnownAtMs, this.#lastLateAtMs) <= intervalMs;
      this.kept = isRateKnown ? this.#capacityIn(keptMs) : this.#max;
      this.current = nowMs - this.#lastLateAtMs > intervalMs ? this.kept : Math.min(this.kept, burstCapacity);
    }
  }

  #reset(): void {
    this.#isOverloaded = false;
    this.#lastLateAtMs = this.#rateKnownAtMs = -Infinity;
    this.#lateSinceMs = undefined;
  }

  /** Returns how many plants the store deletes in this time, at the rate of the fastest of its last batches. */
  #capacityIn(ms: number): number {
    return Math.min(this.#max, Math.ceil(this.#fastestPerMs * ms));
  }

  #recordLargeBatch(batch: Committed, nowMs: number): void {
    const rate = batch.size / batch.durationMs;
    const lastRate = this.#ratesPerMs.at(-1) ?? 0;
    const isLong = batch.durationMs > Math.max(batchMsMin, longCommits * Math.min(...this.#commitsMs));
    const hasGrown = batch.size >= growthMin * this.#lastSize;
    if (isLong && hasGrown && rate >= lastRate / 2 && rate <= lastRate * rateRiseMax) {
      // Forgets older rates, which are higher if the store has become slower.
      this.#ratesPerMs = [lastRate, lastRate];
      this.#rateKnownAtMs = nowMs;
    }
    keepLast(this.#ratesPerMs, rate, ratesKept);
    this.#lastSize = batch.size;
    // A connection may have been opened for the small batches.
    if (batch.durationMs < Math.min(...this.#commitsMs)) keepLast(this.#commitsMs, batch.durationMs, commitTimesKept);
    if (!this.#isOverloaded) this.#checkOverload(batch, nowMs);
  }

  #recordSmallBatch(durationMs: number): void {
    keepLast(this.#commitsMs, durationMs, commitTimesKept);
    if (durationMs > this.#batchMsMax) return;
    this.#lateSinceMs = undefined;
    // After pauses under overload, the limit may allow only small batches, from which the store's rate cannot be
    // measured. So the limit doubles until a batch is large enough.
    const isRateUnknown = this.#isOverloaded && this.current <= 2 * smallBatchMax;
    if (isRateUnknown) keepLast(this.#ratesPerMs, 2 * this.#fastestPerMs, ratesKept);
  }

  get #batchMsMax(): number {
    return Math.max(batchMsMin, commitsPerBatch * Math.min(...this.#commitsMs));
  }

  get #fastestPerMs(): number {
    return Math.max(0, ...this.#ratesPerMs);
  }

  #checkOverload(batch: Committed, nowMs: number): void {
    const isLate = this.#isLate(batch);
    if (isLate && this.#hasUsualRate(batch)) this.#lastLateAtMs = nowMs;
    this.#lateSinceMs = isLate ? (this.#lateSinceMs ?? nowMs) : undefined;
    if (this.#lateSinceMs === undefined || nowMs - this.#lateSinceMs < intervalMs) return;
    this.#isOverloaded = true;
    this.#refusedAtMs = nowMs;
    this.#lateSinceMs = undefined;
  }

  // Half of the fastest rate is enough, because rates vary.
  #hasUsualRate({ size, durationMs }: Committed): boolean {
    return this.#ratesPerMs.length >= ratesKnownMin && 2 * size >= this.#fastestPerMs * durationMs;
  }

  #isLate({ size, durationMs }: Committed): boolean {
    return durationMs > this.#batchMsMax && durationMs > size * slowDeletionMs;
  }
}

function keepLast(values: number[], value: number, kept: number): void {
  values.push(value);
  if (values.length > kept) values.shift();
}
