/** For how many milliseconds batches must be late to count as overload rather than as a burst or a pause. */
const intervalMs = 1_000;

/** The target delay, in milliseconds: a twentieth of the interval, as RFC 8289 recommends. */
const targetMs = intervalMs / 20;

/** The planned duration of a batch in commits, if commits are slow. A commit is then less than a tenth of a batch. */
const commitsPerBatch = 12;

/** How many commits are measured. A store whose commits become slow is noticed after so many. */
const commitsKept = 8;

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
 * The rate halves at most with a batch, so that a single pause has little effect.
 */
export class QueueLimit {
  /** Maximum number of deletions that may wait. Further ones are refused. Only {@link recordCommit} changes it. */
  current: number;
  /** How many queued deletions may stay. Only {@link recordCommit} changes it. */
  kept: number;
  readonly #max: number;
  /** The durations of the last batches with a single deletion, and of shorter ones. */
  #commitsMs: readonly number[] = [];
  /** When a batch with a single deletion was last committed. */
  #loneAtMs = -Infinity;
  /** Whether the next batch has a single deletion. */
  #isCommitDue = false;
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
   * Maximum number of deletions in the next batch. The number doubles with each, as in the slow start of TCP, so that the
   * store's rate is known before many deletions are queued. Under overload, one batch in each interval has a single
   * deletion, which shows how long a commit takes.
   */
  get batchMax(): number {
    if (this.#isCommitDue) return 1;
    const max = 2 * this.#sizeMax;
    return this.#isRateKnown ? Math.min(max, this.#deletedIn(4 * this.#plannedMs)) : max;
  }

  recordRefusal(nowMs: number): void {
    this.#refusedAtMs = nowMs;
  }

  /** Records that a batch is durable. Its duration includes retries. */
  recordCommit({ size, durationMs, isLast }: Committed, nowMs: number): void {
    if (size === 1 || durationMs < this.#commitMs)
      this.#commitsMs = [durationMs, ...this.#commitsMs].slice(0, commitsKept);
    if (size === 1) this.#loneAtMs = nowMs;
    this.#sizeMax = Math.max(size, this.#sizeMax / 2);
    if (size > 1 || !this.#isCommitDue) this.#ratePerMs = Math.max(size / durationMs, this.#ratePerMs / 2);
    const isLate = !isLast && durationMs > 2 * this.#plannedMs;
    this.#lateSinceMs = isLate ? Math.min(this.#lateSinceMs, nowMs) : Number.POSITIVE_INFINITY;
    if (isLast || nowMs - this.#refusedAtMs > intervalMs) this.#isOverloaded = false;
    if (!this.#isOverloaded) {
      if (isLast || durationMs <= this.#plannedMs) this.#forgetRate();
      else this.#recordLongBatch(nowMs - durationMs, nowMs);
    }
    this.#isCommitDue = this.#isOverloaded && nowMs - this.#loneAtMs > intervalMs;
    this.kept = this.#isRateKnown ? this.#deletedIn(intervalMs / 2) : this.#max;
    this.current = this.#isOverloaded ? this.#deletedIn(this.#plannedMs) : this.kept;
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

  /** The duration of a commit, or infinity before the first. The shortest one counts, because any may be delayed. */
  get #commitMs(): number {
    return Math.min(...this.#commitsMs);
  }

  get #plannedMs(): number {
    return Math.max(targetMs / 2, commitsPerBatch * this.#commitMs);
  }

  /** Returns how many plants the store deletes in this time. */
  #deletedIn(ms: number): number {
    return Math.min(this.#max, Math.ceil(this.#ratePerMs * ms));
  }
}
