import { setTimeout as sleep } from "node:timers/promises";
import type { Attempt } from "../contract/backend.ts";
import { type Deletion, endings, endRest, type FailedEnding } from "../contract/deletion.ts";

/** How long a deletion is deferred, in milliseconds. A transaction that holds its lock for longer is probably stuck. */
export const deferredMsMax = 2_000;

/** Milliseconds between two attempts. Short enough for callers to wait, and long enough to cost the server little. */
const attemptIntervalMs = 50;

/** Options for {@link DeferredDeletes}. */
export interface DeferredDeletesOptions {
  /** Commits a batch, as `Backend.commit` does, but never rejects. All have the same token, and their plants are in the same lane. */
  readonly commit: (batch: readonly Deletion[], attempt: Attempt) => Promise<FailedEnding | undefined>;
  readonly laneOf: (id: bigint) => number;
  /** The shortest time for an attempt, in milliseconds. */
  readonly attemptMsMin: number;
  readonly batchMax: number;
  /** Maximum number of deletions that wait. Further ones are refused. */
  readonly waitingMax: number;
}

/** A deferred deletion's limits, on the `performance.now()` clock. */
interface Limits {
  readonly waitEndMs: number;
  readonly deadlineMs: number;
  readonly token: string | undefined;
}

/**
 * Deletions that wait for a locked plant, or until another use of their idempotency key has ended. They are attempted
 * again every 50 ms, separately from the queue, so that they do not delay other deletions. After two seconds their
 * callers get `Unavailable`.
 */
export class DeferredDeletes {
  readonly #options: DeferredDeletesOptions;
  readonly #waiting: Deletion[] = [];
  readonly #limits = new WeakMap<Deletion, Limits>();
  #attempting: Promise<void> | undefined;
  #attempted = 0;

  constructor(options: DeferredDeletesOptions) {
    this.#options = options;
  }

  /** Whether no deletion waits here. If one does, batches do not wait for locks, because more plants may be locked. */
  get isEmpty(): boolean {
    return this.#attempting === undefined;
  }

  /** How many deletions wait or are being attempted. */
  get waiting(): number {
    return this.#waiting.length + this.#attempted;
  }

  /**
   * Adds a deletion, which ends by `deadlineMs`, on the `performance.now()` clock. A deletion that is deferred again
   * keeps its deadline. Its two seconds start again only if it has become in doubt meanwhile.
   */
  add(one: Deletion, deadlineMs: number): void {
    if (this.#waiting.length >= this.#options.waitingMax) return one.end(endings.queueFull());
    const { token } = one;
    const known = this.#limits.get(one);
    if (known === undefined || known.token !== token) {
      this.#limits.set(one, { waitEndMs: performance.now() + deferredMsMax, deadlineMs, token });
    }
    this.#waiting.push(one);
    this.#attempting ??= this.#attemptAll();
  }

  /** Resolves once every deletion is answered. */
  async close(): Promise<void> {
    await this.#attempting;
  }

  async #attemptAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      await sleep(attemptIntervalMs);
      const attempted = this.#waiting.splice(0).filter((one) => this.#hasTime(one));
      this.#attempted = attempted.length;
      const batches = Map.groupBy(attempted, ({ id, token }) => `${token} ${this.#options.laneOf(id)}`);
      for (const batch of batches.values())
        while (batch.length > 0) await this.#attempt(batch.splice(0, this.#options.batchMax));
      this.#attempted = 0;
    }
    // Cleared in the same turn, so that no deletion is added to a loop that has finished.
    this.#attempting = undefined;
  }

  /** Returns whether there is time to attempt a deletion. Ends it otherwise. */
  #hasTime(one: Deletion): boolean {
    if (one.endIfCancelled()) return false;
    const { waitEndMs = 0, deadlineMs = 0 } = this.#limits.get(one) ?? {};
    // With less time than an attempt takes, its batch would be cancelled with an unknown outcome.
    if (performance.now() < Math.min(waitEndMs, deadlineMs - this.#options.attemptMsMin)) return true;
    one.end(endings.unavailable("another transaction holds a lock on the plant, or uses the same idempotency key"));
    return false;
  }

  async #attempt(batch: readonly Deletion[]): Promise<void> {
    const deadlineMs = Math.min(...batch.map((one) => this.#limits.get(one)?.deadlineMs ?? 0));
    for (const one of batch) one.send();
    endRest(batch, await this.#options.commit(batch, { deadlineMs, isCareful: true }));
    for (const one of batch) {
      if (one.isDeferred) this.add(one, deadlineMs);
      else one.answer();
    }
  }
}
