import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Outcomes, PendingDelete } from "../../delete-queue.ts";
import { outcomeUnknown, queueFull, storeUnavailable } from "../../../service/index.ts";
import { attemptTotalMs } from "../server/session.ts";

/** How long a deletion waits for a locked plant, in milliseconds: a transaction that takes longer is probably stuck. */
export const lockedForMsMax = 2_000;

/** Milliseconds between two attempts: short enough for callers to wait, and long enough to cost the server little. */
const attemptIntervalMs = 50;

/** A deletion that is attempted again in a later batch, usually because another transaction has locked its plant. */
export interface LockedDelete extends PendingDelete {
  /** The token of the batch that may have deleted the plant; `undefined` if nothing was done. */
  readonly token?: string;
}

/**
 * Marks a deletion as one that a batch with this token may have committed, or may still commit. In the returned
 * deletion, errors that would mean that nothing was done are replaced by an error with an unknown outcome.
 */
export function markInDoubt(pending: LockedDelete, token: string): LockedDelete {
  if (pending.token === token) return pending;
  const { id, call, resolve } = pending;
  return { id, call, resolve, reject: (reason) => pending.reject(withUnknownOutcome(reason)), token };
}

// These two codes mean that nothing was done. Other errors, for a cancelled call or a protected plant, stay unchanged.
function withUnknownOutcome(reason: unknown): unknown {
  const { code } = ConnectError.from(reason);
  return code === Code.Unavailable || code === Code.ResourceExhausted ? outcomeUnknown(reason) : reason;
}

/** Options of {@link LockedDeletes}. */
export interface LockWaitOptions {
  /**
   * Deletes the plants that are no longer locked and hands the rest back to {@link LockedDeletes.add}. All deletions
   * have the same token, and their plants are on the same worker. Must settle by `deadlineMs`, on the clock of
   * `performance.now()`.
   */
  readonly commit: (batch: readonly LockedDelete[], deadlineMs: number) => Promise<Outcomes>;
  readonly workerOf: (id: bigint) => number;
  readonly batchMax: number;
  /** The most deletions that wait for a lock; further ones are refused. */
  readonly waitingMax: number;
}

/**
 * Deletions of plants that other transactions have locked. They are retried separately from the queue, so that they do
 * not delay other deletions. After two seconds their callers get `Unavailable`.
 */
export class LockedDeletes {
  readonly #options: LockWaitOptions;
  readonly #waiting: LockedDelete[] = [];
  /** For each deletion, the end of its wait for the lock and its deadline, on the clock of `performance.now()`. */
  readonly #limits = new WeakMap<LockedDelete, { readonly lockEndMs: number; readonly deadlineMs: number }>();
  #attempting: Promise<void> | undefined;
  #attempted = 0;

  constructor(options: LockWaitOptions) {
    this.#options = options;
  }

  /**
   * Whether no deletion waits here. If any does, batches do not wait for locks, because other plants may be locked,
   * too.
   */
  get isEmpty(): boolean {
    return this.#attempting === undefined;
  }

  /** The number of deletions that wait for a lock or are being attempted. */
  get waiting(): number {
    return this.#waiting.length + this.#attempted;
  }

  /**
   * Adds a deletion, which is settled by `deadlineMs`, on the clock of `performance.now()`. A deletion that is handed
   * back keeps its deadline.
   */
  add(pending: LockedDelete, deadlineMs: number): void {
    if (this.#waiting.length >= this.#options.waitingMax) return pending.reject(queueFull());
    if (!this.#limits.has(pending)) {
      this.#limits.set(pending, { lockEndMs: performance.now() + lockedForMsMax, deadlineMs });
    }
    this.#waiting.push(pending);
    this.#attempting ??= this.#attemptAll();
  }

  /** Resolves once every deletion is settled. */
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
    // Cleared in the same turn, so that no deletion is added to a loop that has finished.
    this.#attempting = undefined;
  }

  /** Returns whether there is time to attempt a deletion; rejects it otherwise. */
  #hasTime(pending: LockedDelete): boolean {
    const { aborted, reason } = pending.call.context.signal;
    const { lockEndMs = 0, deadlineMs = 0 } = this.#limits.get(pending) ?? {};
    // With less time than an attempt takes, its batch would be cancelled with an unknown outcome.
    const isTimeOver = performance.now() >= Math.min(lockEndMs, deadlineMs - attemptTotalMs);
    if (aborted) pending.reject(reason);
    else if (isTimeOver) pending.reject(storeUnavailable("another transaction holds a lock on the plant"));
    return !aborted && !isTimeOver;
  }

  async #attempt(batch: readonly LockedDelete[]): Promise<void> {
    try {
      const deadlineMs = Math.min(...batch.map((one) => this.#limits.get(one)?.deadlineMs ?? 0));
      const outcomes = await this.#options.commit(batch, deadlineMs);
      batch.forEach(({ resolve }, i) => outcomes[i] !== undefined && resolve(outcomes[i]));
    } catch (reason) {
      for (const pending of batch) pending.reject(reason);
    }
  }
}
