import { setTimeout as sleep } from "node:timers/promises";
import type { Backend } from "../contract/backend.ts";
import { type Deletion, endings } from "../contract/deletion.ts";
import { commitBatch } from "./commit-batch.ts";

/**
 * Maximum time a deletion is deferred, in milliseconds. A transaction that locks a plant for a longer time is probably
 * stuck.
 */
export const deferredMsMax = 2_000;

/** Interval between attempts, in milliseconds. Short for waiting callers, but long enough to cost the server little. */
const attemptIntervalMs = 50;

/** A deferred deletion's time limits, on the `performance.now()` clock. */
interface Limits {
  readonly waitEndMs: number;
  readonly deadlineMs: number;
  readonly token: string | undefined;
}

/**
 * Deletions that wait for a locked plant or for a call with the same idempotency key. Each deletion is retried every
 * 50 ms, and fails with `Unavailable` after two seconds. Retries bypass the queue, so that other calls are not delayed.
 */
export class DeferredDeletes {
  readonly #backend: Backend;
  readonly #batchMax: number;
  readonly #waitingMax: number;
  readonly #waiting: Deletion[] = [];
  readonly #limits = new WeakMap<Deletion, Limits>();
  #attempting: Promise<void> | undefined;
  #attempted = 0;

  /** @param waitingMax - the maximum number of waiting deletions. Further deletions are refused */
  constructor(backend: Backend, batchMax: number, waitingMax: number) {
    this.#backend = backend;
    this.#batchMax = batchMax;
    this.#waitingMax = waitingMax;
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
   * keeps its deadline. The two-second limit restarts only if the last attempt left the deletion in doubt.
   */
  add(one: Deletion, deadlineMs: number): void {
    if (this.#waiting.length >= this.#waitingMax) return one.end(endings.queueFull());
    const { token } = one;
    const known = this.#limits.get(one);
    if (known === undefined || known.token !== token) {
      this.#limits.set(one, { waitEndMs: performance.now() + deferredMsMax, deadlineMs, token });
    }
    this.#waiting.push(one);
    this.#attempting ??= this.#attemptAll();
  }

  /** Resolves once every deletion is settled. */
  async close(): Promise<void> {
    await this.#attempting;
  }

  async #attemptAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      await sleep(attemptIntervalMs);
      const attempted = this.#waiting.splice(0).filter((one) => this.#hasTime(one));
      this.#attempted = attempted.length;
      const { lanes } = this.#backend;
      const batches = Map.groupBy(attempted, ({ id, token }) => `${token} ${lanes?.of(id)}`);
      for (const batch of batches.values())
        while (batch.length > 0) await this.#attempt(batch.splice(0, this.#batchMax));
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
    if (performance.now() < Math.min(waitEndMs, deadlineMs - (this.#backend.attemptMsMin ?? 0))) return true;
    one.end(endings.unavailable("another transaction holds a lock on the plant, or uses the same idempotency key"));
    return false;
  }

  async #attempt(batch: readonly Deletion[]): Promise<void> {
    const deadlineMs = Math.min(...batch.map((one) => this.#limits.get(one)?.deadlineMs ?? 0));
    for (const one of batch) one.send();
    await commitBatch(this.#backend, batch, { deadlineMs, isCareful: true });
    for (const one of batch) {
      if (one.isDeferred) this.add(one, deadlineMs);
      else one.settle();
    }
  }
}
