import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Outcomes, PendingDelete } from "../../delete-queue.ts";
import { outcomeUnknown, queueFull, storeUnavailable } from "../../../service/index.ts";
import { attemptTotalMs } from "../server/session.ts";

/** How long a locked plant is waited for, in milliseconds: a transaction that takes longer is probably stuck. */
export const lockedForMsMax = 2_000;

/**
 * Milliseconds between two attempts: soon enough for a caller that waits, and seldom enough to cost the server little.
 */
const attemptIntervalMs = 50;

/** A deletion whose plant another transaction keeps locked. */
export interface LockedDelete extends PendingDelete {
  /** The token of the batch that may have deleted the plant; without a token, certainly nothing was done. */
  readonly token?: string;
}

/**
 * Returns a deletion that a batch with this token may have done, or may even be doing. Its caller will not be told that
 * nothing was done, whatever rejects it.
 */
export function inDoubt(pending: LockedDelete, token: string): LockedDelete {
  if (pending.token === token) return pending;
  const { id, call, resolve } = pending;
  return { id, call, resolve, reject: (reason) => pending.reject(withoutCertainty(reason)), token };
}

// These two codes would say that nothing was done. Other reasons are those of the caller, which has gone, and of the
// database, which keeps the plant.
function withoutCertainty(reason: unknown): unknown {
  const { code } = ConnectError.from(reason);
  return code === Code.Unavailable || code === Code.ResourceExhausted ? outcomeUnknown(reason) : reason;
}

/** Options of {@link LockedDeletes}. */
export interface LockedDeletesOptions {
  /**
   * Deletes the plants that are no longer locked and hands the rest back to {@link LockedDeletes.add}. All deletions
   * have the same token, and their plants are on the same worker. All is to have ended at `untilMs`, on the clock of
   * `performance.now()`.
   */
  readonly commit: (batch: readonly LockedDelete[], untilMs: number) => Promise<Outcomes>;
  /** Returns the index of the worker that has a plant. */
  readonly workerOf: (id: bigint) => number;
  /** The most deletions in one batch. */
  readonly batchMax: number;
  /** The most deletions that wait for a lock; further ones are refused. */
  readonly waitingMax: number;
}

/**
 * Deletions of plants that other transactions keep locked. They are attempted apart from the queue, again and again, so
 * that no other deletion waits with them. After two seconds their callers get `Unavailable`.
 */
export class LockedDeletes {
  readonly #options: LockedDeletesOptions;
  readonly #waiting: LockedDelete[] = [];
  /** When to give up the lock of each deletion, and when its caller is to be told, on the clock of `performance.now()`. */
  readonly #limits = new WeakMap<LockedDelete, { readonly lockMs: number; readonly untilMs: number }>();
  #attempting: Promise<void> | undefined;
  #attempted = 0;

  constructor(options: LockedDeletesOptions) {
    this.#options = options;
  }

  /** Whether no deletion waits here. If one does, other plants may be locked, too, and no lock is worth waiting for. */
  get isEmpty(): boolean {
    return this.#attempting === undefined;
  }

  /** The number of deletions that wait for a lock, including those that are being attempted. */
  get waiting(): number {
    return this.#waiting.length + this.#attempted;
  }

  /**
   * Takes a deletion over, whose caller is to be told at `untilMs`, on the clock of `performance.now()`. One that is
   * handed back gets no more time.
   */
  add(pending: LockedDelete, untilMs: number): void {
    if (this.#waiting.length >= this.#options.waitingMax) return pending.reject(queueFull());
    if (!this.#limits.has(pending)) {
      this.#limits.set(pending, { lockMs: performance.now() + lockedForMsMax, untilMs });
    }
    this.#waiting.push(pending);
    this.#attempting ??= this.#attemptAll();
  }

  /** Resolves once every caller is answered. */
  async close(): Promise<void> {
    await this.#attempting;
  }

  async #attemptAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      await sleep(attemptIntervalMs);
      const attempted = this.#waiting.splice(0).filter((pending) => this.#hasTime(pending));
      this.#attempted = attempted.length;
      const batches = Map.groupBy(attempted, ({ id, token }) => `${token} ${this.#options.workerOf(id)}`);
      for (const batch of batches.values())
        while (batch.length > 0) await this.#attempt(batch.splice(0, this.#options.batchMax));
      this.#attempted = 0;
    }
    // Cleared in the same turn, so that no deletion is added to a loop that has ended.
    this.#attempting = undefined;
  }

  /** Returns whether a deletion is to be attempted; rejects it otherwise. */
  #hasTime(pending: LockedDelete): boolean {
    const { aborted, reason } = pending.call.context.signal;
    const { lockMs = 0, untilMs = 0 } = this.#limits.get(pending) ?? {};
    // With less time than an attempt takes, it would be given up in doubt, and those that share its batch with it.
    const isTimeOver = performance.now() >= Math.min(lockMs, untilMs - attemptTotalMs);
    if (aborted) pending.reject(reason);
    else if (isTimeOver) pending.reject(storeUnavailable("another transaction holds a lock on the plant"));
    return !aborted && !isTimeOver;
  }

  async #attempt(batch: readonly LockedDelete[]): Promise<void> {
    try {
      const untilMs = Math.min(...batch.map((one) => this.#limits.get(one)?.untilMs ?? 0));
      const outcomes = await this.#options.commit(batch, untilMs);
      batch.forEach(({ resolve }, i) => outcomes[i] !== undefined && resolve(outcomes[i]));
    } catch (reason) {
      for (const pending of batch) pending.reject(reason);
    }
  }
}
