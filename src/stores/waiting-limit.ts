/** The most deletions in a small batch, which takes about as long as a single deletion: its time is the commit's. */
const smallBatchMax = 8;

/** How many small batches are remembered. The quickest counts, so that a pause in one of them changes nothing. */
const commitsKept = 8;

/** Milliseconds that a batch may always take: with the wait before it, a twentieth of a second for its callers. */
const batchMsMin = 25;

/** The time that a batch may take, in commits: the commit itself is then less than a tenth of the batch. */
const commitsPerBatch = 12;

/** Milliseconds per deletion above which a store is slow. A quicker one empties a full queue in a second or two. */
const slowDeletionMs = 0.1;

/** How long every batch must have been late, in milliseconds, to be overload rather than a pause or a failover. */
const overloadedAfterMs = 1_000;

/**
 * How many larger batches are remembered by their rates. The quickest counts, so that a pause does not pass for a slow
 * store. Few, so that a store that has become slow is soon known to be.
 */
const ratesKept = 4;

/** How many rates must be known before a batch is compared with them: more than the two that one pause can lower. */
const ratesKnownMin = 3;

/**
 * The longest wait of a deletion while it is not yet known whether the overload lasts, in milliseconds: long enough for
 * a burst or a few slow commits.
 */
const burstMs = 250;

/**
 * How long nothing must have been refused before overload counts as over, in milliseconds, unless the store is idle
 * sooner. A late batch has an effect for as long.
 */
const calmMs = 1_000;

/** A batch that is durable. */
interface Committed {
  readonly size: number;
  readonly durationMs: number;
  /** Whether it leaves the store with nothing to do: no deletion waits, and no other batch is being committed. */
  readonly isLast: boolean;
}

/**
 * Decides how many deletions may wait for a batch.
 *
 * As many as memory has room for, unless the store cannot keep up: then as many as it deletes in the time that a batch
 * may take. More would delay everyone and gain nothing, since larger batches would be longer, not quicker. A queue is
 * judged by time, and only if it lasts, as in CoDel (RFC 8289).
 *
 * It takes a second to know that, in which thousands would come only to be refused at its end. So as soon as a batch is
 * late although the store is no slower than before, which blames the load and not a pause, only as many may wait as the
 * store deletes in a quarter of a second. Those that wait already are kept.
 *
 * A store that is idle between bursts keeps up, however long it takes for each.
 */
export class WaitingLimit {
  /** How many deletions may wait; further ones are refused. Only {@link committed} changes it. */
  current: number;
  /** How many of the deletions that wait already may go on waiting. Only {@link committed} changes it. */
  kept: number;
  readonly #most: number;
  readonly #commitsMs: number[] = [];
  readonly #ratesPerMs: number[] = [];
  #lateSinceMs: number | undefined;
  #strainedAtMs = -Infinity;
  #isOverloaded = false;
  #refusedAtMs = 0;

  /** @param most - deletions that may wait while the store keeps up */
  constructor(most: number) {
    this.#most = this.current = this.kept = most;
  }

  /** Records that a deletion was refused. */
  refused(nowMs: number): void {
    this.#refusedAtMs = nowMs;
  }

  /** Records that a batch is durable. Its time includes its repetitions after faults. */
  committed(batch: Committed, nowMs: number): void {
    if (nowMs - this.#refusedAtMs > calmMs) this.#isOverloaded = false;
    if (batch.size <= smallBatchMax) this.#committedFew(batch.durationMs);
    else this.#committedMany(batch, nowMs);
    if (batch.isLast) this.#caughtUp();
    const burst = this.#roomFor(Math.max(burstMs, this.#batchMsMax));
    if (this.#isOverloaded) {
      this.kept = burst;
      this.current = this.#roomFor(this.#batchMsMax);
    } else {
      this.kept = this.#most;
      this.current = nowMs - this.#strainedAtMs > calmMs ? this.#most : burst;
    }
  }

  #caughtUp(): void {
    this.#isOverloaded = false;
    this.#strainedAtMs = -Infinity;
    this.#lateSinceMs = undefined;
  }

  /** Returns how many plants the store deletes in a time, by the quickest of its last batches. */
  #roomFor(ms: number): number {
    return Math.min(this.#most, Math.ceil(this.#quickestPerMs * ms));
  }

  #committedMany(batch: Committed, nowMs: number): void {
    remember(this.#ratesPerMs, batch.size / batch.durationMs, ratesKept);
    if (!this.#isOverloaded) this.#watch(batch, nowMs);
  }

  #committedFew(durationMs: number): void {
    remember(this.#commitsMs, durationMs, commitsKept);
    if (durationMs > this.#batchMsMax) return;
    this.#lateSinceMs = undefined;
    // Pauses under overload can leave room for small batches only, which do not show how quick the store is. So the
    // room doubles until a batch is large enough to judge by.
    const judgesNone = this.#isOverloaded && this.current <= 2 * smallBatchMax;
    if (judgesNone) remember(this.#ratesPerMs, 2 * this.#quickestPerMs, ratesKept);
  }

  get #batchMsMax(): number {
    return Math.max(batchMsMin, commitsPerBatch * Math.min(...this.#commitsMs));
  }

  get #quickestPerMs(): number {
    return Math.max(0, ...this.#ratesPerMs);
  }

  #watch(batch: Committed, nowMs: number): void {
    const isLate = this.#isLate(batch);
    if (isLate && this.#isAsQuickAsEver(batch)) this.#strainedAtMs = nowMs;
    this.#lateSinceMs = isLate ? (this.#lateSinceMs ?? nowMs) : undefined;
    if (this.#lateSinceMs === undefined || nowMs - this.#lateSinceMs < overloadedAfterMs) return;
    this.#isOverloaded = true;
    this.#refusedAtMs = nowMs;
    this.#lateSinceMs = undefined;
  }

  // Half of the quickest rate will do: no two batches are alike.
  #isAsQuickAsEver({ size, durationMs }: Committed): boolean {
    return this.#ratesPerMs.length >= ratesKnownMin && 2 * size >= this.#quickestPerMs * durationMs;
  }

  #isLate({ size, durationMs }: Committed): boolean {
    return durationMs > this.#batchMsMax && durationMs > size * slowDeletionMs;
  }
}

function remember(values: number[], value: number, kept: number): void {
  values.push(value);
  if (values.length > kept) values.shift();
}
