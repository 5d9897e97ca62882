import { setTimeout as sleep } from "node:timers/promises";
import type { Attempt } from "../contract/backend.ts";
import { type Deletion, endings, endRest, type FailedEnding } from "../contract/deletion.ts";

/**
 * Maximum time a deletion is deferred, in milliseconds. A transaction that locks a plant for a longer time is probably
 * stuck.
 */
export const deferredMsMax = 2_000;

/** Interval between attempts, in milliseconds. Short for waiting callers, but long enough to cost the server little. */
const attemptIntervalMs = 50;

/** Options for {@link DeferredDeletes}. */
export interface DeferredDeletesOptions {
  /** Like `Backend.commit`, but never rejects. All deletions in the batch have the same token and the same lane. */
  readonly commit: (batch: readonly Deletion[], attempt: Attempt) => Promise<FailedEnding | undefined>;
  readonly laneOf: (id: bigint) => number;
  readonly attemptMsMin: number;
  readonly batchMax: number;
  /** Maximum number of waiting deletions. Further deletions are refused. */
  readonly waitingMax: number;
}

/** A deferred deletion's time limits, on the `performance.now()` clock. */
interface Limits {
  readonly waitEndMs: number;
  readonly deadlineMs: number;
  readonly token: string | undefined;
}

/**
 * Deletions that wait for a locked plant or for a call with the same idempotency key. They are retried every 50 ms,
 * separately from the queue, so that other deletions are not delayed, and get `Unavailable` after two seconds.
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

  /** Whether no deletion is deferred. While deletions are deferred, batches do not wait for locks. */
  get isEmpty(): boolean {
    return this.#attempting === undefined;
  }

  /** Number of deferred deletions, including deletions that are being attempted. */
  get waiting(): number {
    return this.#waiting.length + this.#attempted;
  }

  /**
   * Adds a deletion that must end by `deadlineMs`, on the `performance.now()` clock. A deletion that is deferred again
   * keeps its deadline. The two seconds start again only if the last attempt left the deletion in doubt.
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
    // Cleared in the same turn as the last check, so that no deletion is added to a finished loop.
    this.#attempting = undefined;
  }

  // Returns whether a deletion has time for an attempt. Otherwise, ends the deletion.
  #hasTime(one: Deletion): boolean {
    if (one.endIfCancelled()) return false;
    const { waitEndMs = 0, deadlineMs = 0 } = this.#limits.get(one) ?? {};
    // An attempt with too little time would be cancelled, and its outcome would be unknown.
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
