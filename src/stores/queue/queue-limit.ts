/** For how many milliseconds batches must be late to count as overload rather than as a burst or a pause. */
const intervalMs = 1_000;

/** The target delay, in milliseconds: a twentieth of the interval, as RFC 8289 recommends. */
const targetMs = intervalMs / 20;

/** The planned duration of a batch in commits, if commits are slow. A commit is then less than a tenth of a batch. */
const commitsPerBatch = 12;

/**
 * The limit until an overload is certain is at least this. A busy machine often makes several small batches long, from
 * which no rate follows.
 */
const keptMin = 256;

/** A batch that is durable. */
interface Committed {
  readonly size: number;
  readonly durationMs: number;
  /** Whether the store is idle after this batch, because no deletion waits and no other batch is being committed. */
  readonly isLast: boolean;
}

/**
 * Decides how many deletions may wait for a batch, by CoDel (RFC 8289) and Little's law (length = rate × delay).
 *
 * As in CoDel, a store is overloaded once the delay has been above a target for an interval. A deletion waits for one
 * batch before its own, so the delay is measured in batches: one is late if it takes twice the planned duration. Under
 * overload, the limit is the number that the store deletes in a planned batch. A longer queue would delay all callers
 * without any gain, because larger batches would not be more efficient.
 *
 * Until the overload is certain, the limit is the number that the store deletes in half an interval, as soon as long
 * batches show its rate. Otherwise it is the number that fits into memory.
 *
 * A long batch does not show whether the deletions or the commit took long. So a batch with a single deletion follows,
 * the probe. The commits are slow if several probes in succession are, as on a standby that was just promoted. Batches
 * are then planned to take longer, and are not late.
 *
 * With a batch, the rate halves at most, and a commit's duration doubles at most, so that a pause has little effect.
 */
export class QueueLimit {
  /** Maximum number of deletions that may wait. Further ones are refused. Only {@link recordCommit} changes it. */
  current: number;
  /** How many queued deletions may stay. Only {@link recordCommit} changes it. */
  kept: number;
  readonly #max: number;
  /** The duration of a commit, from batches with a single deletion, and from shorter ones. */
  #commitMs = Number.POSITIVE_INFINITY;
  /** Whether the next batch is a probe. */
  #isProbeDue = false;
  /** How many probes are being committed. */
  #probes = 0;
  #probedAtMs = -Infinity;
  /** The largest size of the last batches. Halved with each batch. */
  #sizeMax = 1;
  #ratePerMs = 0;
  /** When the first of several long batches ended. */
  #longSinceMs = Number.POSITIVE_INFINITY;
  /**
   * Whether a second long batch was sent after that, because concurrent batches may be long by the same pause. A short
   * batch does not show the store's rate, because most of its duration is the commit.
   */
  #isRateKnown = false;
  #lateSinceMs = Number.POSITIVE_INFINITY;
  #isOverloaded = false;
  #refusedAtMs = 0;

  /** @param max - the limit while the store keeps up */
  constructor(max: number) {
    this.#max = this.current = this.kept = max;
  }

  /**
   * Returns the maximum number of deletions in the batch that is sent next. The number doubles with each batch, as in the
   * slow start of TCP, so that the store's rate is known before many deletions are queued.
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

  /** Records that a batch is durable. Its duration includes retries. */
  recordCommit(batch: Committed, nowMs: number): void {
    const { size, durationMs, isLast } = batch;
    if (size === 1 || durationMs < this.#commitMs) this.#commitMs = Math.min(durationMs, 2 * this.#commitMs);
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
    this.#updateLimits();
  }

  #updateLimits(): void {
    if (!this.#isRateKnown && !this.#isOverloaded) {
      this.kept = this.current = this.#max;
      return;
    }
    const kept = this.#deletedIn(intervalMs / 2);
    this.kept = this.#isOverloaded ? kept : Math.min(this.#max, Math.max(keptMin, kept));
    this.current = this.#isOverloaded ? this.#deletedIn(this.#plannedMs) : this.kept;
  }

  #recordLoad({ size, durationMs, isLast }: Committed, isLong: boolean, nowMs: number): void {
    this.#sizeMax = Math.max(size, this.#sizeMax / 2);
    this.#ratePerMs = Math.max(size / durationMs, this.#ratePerMs / 2);
    const isLate = !isLast && durationMs > 2 * this.#plannedMs;
    this.#lateSinceMs = isLate ? Math.min(this.#lateSinceMs, nowMs) : Number.POSITIVE_INFINITY;
    if (isLast || nowMs - this.#refusedAtMs > intervalMs) this.#isOverloaded = false;
    if (this.#isOverloaded) return;
    if (isLong) this.#recordLongBatch(nowMs - durationMs, nowMs);
    else this.#forgetRate();
  }

  #forgetRate(): void {
    this.#longSinceMs = Number.POSITIVE_INFINITY;
    this.#isRateKnown = false;
    this.#ratePerMs = 0;
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

  /** Returns how many plants the store deletes in this time. */
  #deletedIn(ms: number): number {
    return Math.min(this.#max, Math.ceil(this.#ratePerMs * ms));
  }
}
