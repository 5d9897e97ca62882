/** How long batches must be late to count as overload, in milliseconds. Bursts and pauses are shorter. */
const intervalMs = 1_000;

/** The target delay, in milliseconds. RFC 8289 recommends a twentieth of the interval. */
const targetMs = intervalMs / 20;

/** Minimum ratio of a batch's planned duration to a commit's duration. A commit then takes under 10 % of a batch. */
const commitsPerBatch = 12;

// Lower bound of `kept` until an overload is certain, in deletions. Small batches may be late by chance.
const keptMin = 256;

interface Committed {
  readonly size: number;
  readonly durationMs: number;
  /** Whether the store is idle after this batch: no deletion waits and no other batch is being committed. */
  readonly isLast: boolean;
}

/**
 * Limits how many deletions may wait for a batch. Uses CoDel (RFC 8289) and Little's law (length = rate × delay).
 *
 * As in CoDel, a store is overloaded once the delay has been above a target for an interval. A deletion's delay depends
 * on the previous batch's duration, so a batch is late if it takes twice the planned duration. Under overload, the
 * limit is what the store deletes in a batch's planned duration, because larger batches would not be more efficient.
 *
 * Before an overload is certain, the limit is the number of plants that the store deletes in half a second. Until long
 * batches show the store's rate, the limit depends only on memory.
 *
 * A long batch does not show whether the deletions or the commit took long. So the store then commits a probe, which is
 * a batch with a single deletion. Several slow probes in succession show that commits are slow, as on a newly promoted
 * standby. Batches then have a longer planned duration, and do not count as late.
 *
 * A single batch can only halve the measured rate or double the measured commit duration, so a pause has little effect.
 */
export class QueueLimit {
  readonly #max: number;
  /**
   * Duration of the shortest commit. Doubled if a batch with a single deletion takes more than twice as long.
   * Concurrent batches slow a commit, so a smaller difference has no effect.
   */
  #commitMs = Number.POSITIVE_INFINITY;
  #isProbeDue = false;
  #probes = 0;
  #probedAtMs = -Infinity;
  /** Maximum size of recent batches. Each batch halves the previous maximum. */
  #sizeMax = 1;
  #ratePerMs = 0;
  /** When the first in a series of long batches ended. */
  #longSinceMs = Number.POSITIVE_INFINITY;
  // Whether the store's rate is known, because a second long batch was sent after the first had ended. Concurrent long
  // batches are not sufficient, because a single pause may delay all of them. A short batch does not show the rate,
  // because the commit takes most of its time.
  #isRateKnown = false;
  #lateSinceMs = Number.POSITIVE_INFINITY;
  #isOverloaded = false;
  #refusedAtMs = 0;

  /** @param max - the limit while the store keeps up */
  constructor(max: number) {
    this.#max = max;
  }

  /** Maximum number of waiting deletions. Further deletions are refused. {@link recordCommit} changes the limit. */
  get current(): number {
    return this.#isOverloaded ? this.#deletedIn(this.#plannedMs) : this.kept;
  }

  /** Number of queued deletions to keep after a batch. Only {@link recordCommit} changes the number. */
  get kept(): number {
    if (!this.#isRateKnown && !this.#isOverloaded) return this.#max;
    const kept = this.#deletedIn(intervalMs / 2);
    return this.#isOverloaded ? kept : Math.min(this.#max, Math.max(keptMin, kept));
  }

  /**
   * Returns the maximum number of deletions in the next batch. Each batch doubles the number, as in TCP slow start, so
   * that the store's rate is known before many deletions are queued.
   */
  planBatch(): number {
    if (this.#isProbeDue) {
      this.#isProbeDue = false;
      this.#probes++;
      return 1;
    }
    const max = 2 * this.#sizeMax;
    return this.#isRateKnown ? Math.min(max, this.#deletedIn(4 * this.#plannedMs)) : max;
  }

  recordRefusal(nowMs: number): void {
    this.#refusedAtMs = nowMs;
  }

  /** Records a durable batch. The batch duration includes retries. */
  recordCommit(batch: Committed, nowMs: number): void {
    const { size, durationMs, isLast } = batch;
    if (durationMs < this.#commitMs) this.#commitMs = durationMs;
    else if (size === 1 && durationMs > 2 * this.#commitMs) this.#commitMs *= 2;
    const isLong = !isLast && durationMs > this.#plannedMs;
    const isProbe = size === 1 && this.#probes > 0;
    if (isProbe) this.#probes--;
    if (isProbe && !isLast) {
      this.#probedAtMs = nowMs;
      this.#isProbeDue = isLong;
    } else {
      this.#recordLoad(batch, isLong, nowMs);
      this.#isProbeDue = (isLong || this.#isOverloaded) && nowMs - this.#probedAtMs > intervalMs;
    }
  }

  #recordLoad({ size, durationMs, isLast }: Committed, isLong: boolean, nowMs: number): void {
    this.#sizeMax = Math.max(size, this.#sizeMax / 2);
    this.#ratePerMs = Math.max(size / durationMs, this.#ratePerMs / 2);
    const isLate = !isLast && durationMs > 2 * this.#plannedMs;
    this.#lateSinceMs = isLate ? Math.min(this.#lateSinceMs, nowMs) : Number.POSITIVE_INFINITY;
    if (isLast || nowMs - this.#refusedAtMs > intervalMs) this.#isOverloaded = false;
    if (this.#isOverloaded) return;
    if (isLong) this.#recordLongBatch(nowMs - durationMs, nowMs);
    else {
      this.#longSinceMs = Number.POSITIVE_INFINITY;
      this.#isRateKnown = false;
      this.#ratePerMs = 0;
    }
  }

  #recordLongBatch(sentMs: number, nowMs: number): void {
    this.#longSinceMs = Math.min(this.#longSinceMs, nowMs);
    if (sentMs >= this.#longSinceMs) this.#isRateKnown = true;
    if (nowMs - this.#lateSinceMs < intervalMs) return;
    this.#isOverloaded = true;
    this.#refusedAtMs = nowMs;
  }

  get #plannedMs(): number {
    return Math.max(targetMs / 2, commitsPerBatch * this.#commitMs);
  }

  #deletedIn(ms: number): number {
    return Math.min(this.#max, Math.ceil(this.#ratePerMs * ms));
  }
}
