/** A batch of at most so many deletions takes about as long as a lone one: what a commit takes by itself. */
const smallBatchMax = 8;

/** Small batches that are remembered; the quickest counts, so that a pause in one of them changes nothing. */
const commitsKept = 8;

/** Milliseconds that a batch may always take: with the wait before it, a twentieth of a second for its callers. */
const batchMsMin = 25;

/** How often what a commit takes goes into the time that a batch may take: less than a tenth of it is lost by that. */
const commitsPerBatch = 12;

/** Milliseconds a deletion above which a store is slow. A quicker one empties a full queue in a second or two. */
const slowDeletionMs = 0.1;

/** How long every batch must have been late, in milliseconds, so that a pause or a failover is not taken for overload. */
const overloadedAfterMs = 1_000;

/** How long nothing must have been refused before overload counts as over, in milliseconds. */
const calmMs = 1_000;

/** A batch that is durable. */
interface Committed {
  readonly size: number;
  readonly durationMs: number;
}

/**
 * Knows how many deletions may wait for a batch.
 *
 * As many as memory has room for, unless the store cannot keep up: then as many as it deletes in the time that a batch
 * may take. More would delay everyone and add nothing, since from there on batches get longer and not quicker. A queue
 * is judged by time, and only if it lasts, as in CoDel (RFC 8289).
 */
export class WaitingLimit {
  /** Deletions that may wait at the moment. Only {@link committed} changes it. */
  current: number;
  readonly #most: number;
  readonly #commitsMs: number[] = [];
  #lateSinceMs: number | undefined;
  #isOverloaded = false;
  #deletionsPerMs = 0;
  #refusedAtMs = 0;

  /** @param most - deletions that may wait while the store keeps up */
  constructor(most: number) {
    this.#most = this.current = most;
  }

  /** Records that a deletion was refused. */
  refused(nowMs: number): void {
    this.#refusedAtMs = nowMs;
  }

  /** Records that a batch is durable. Its time includes that of its repetitions after faults. */
  committed(batch: Committed, nowMs: number): void {
    if (nowMs - this.#refusedAtMs > calmMs) this.#isOverloaded = false;
    if (batch.size <= smallBatchMax) this.#committedFew(batch.durationMs);
    else this.#committedMany(batch, nowMs);
    const lasting = Math.ceil(this.#deletionsPerMs * this.#batchMsMax);
    this.current = this.#isOverloaded ? Math.min(this.#most, lasting) : this.#most;
  }

  #committedMany(batch: Committed, nowMs: number): void {
    this.#deletionsPerMs = batch.size / batch.durationMs;
    if (!this.#isOverloaded) this.#watch(batch, nowMs);
  }

  #committedFew(durationMs: number): void {
    this.#learn(durationMs);
    if (durationMs > this.#batchMsMax) return;
    this.#lateSinceMs = undefined;
    // A pause under overload can leave room for small batches only, which do not show how quick the store is. So the room
    // doubles until a batch is large enough to judge by.
    this.#deletionsPerMs *= 2;
  }

  get #batchMsMax(): number {
    return Math.max(batchMsMin, commitsPerBatch * Math.min(...this.#commitsMs));
  }

  #learn(commitMs: number): void {
    this.#commitsMs.push(commitMs);
    if (this.#commitsMs.length > commitsKept) this.#commitsMs.shift();
  }

  #watch(batch: Committed, nowMs: number): void {
    this.#lateSinceMs = this.#isLate(batch) ? (this.#lateSinceMs ?? nowMs) : undefined;
    if (this.#lateSinceMs === undefined || nowMs - this.#lateSinceMs < overloadedAfterMs) return;
    this.#isOverloaded = true;
    this.#refusedAtMs = nowMs;
    this.#lateSinceMs = undefined;
  }

  #isLate({ size, durationMs }: Committed): boolean {
    return durationMs > this.#batchMsMax && durationMs > size * slowDeletionMs;
  }
}
