import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Outcomes, PendingDelete } from "../../delete-queue.ts";
import { outcomeUnknown, queueFull, storeUnavailable } from "../../../service/index.ts";
import { attemptTotalMs } from "../server/session.ts";

/** How long a deletion is deferred, in milliseconds: a transaction that holds its lock for longer is probably stuck. */
export const deferredMsMax = 2_000;

/** Milliseconds between two attempts: short enough for callers to wait, and long enough to cost the server little. */
const attemptIntervalMs = 50;

/**
 * A deletion that is attempted again in a later batch: another transaction has locked its plant or uses its idempotency
 * key, or it depends on another deletion of its batch, with the same plant or key.
 */
export interface DeferredDelete extends PendingDelete {
  /** The token of the batch that may have deleted the plant; `undefined` if nothing was done. */
  readonly token?: string;
}

/**
 * Marks a deletion as one that a batch with this token may have committed, or may still commit. In the returned
 * deletion, errors that would mean that nothing was done are replaced by an error with an unknown outcome.
 */
export function markInDoubt(pending: DeferredDelete, token: string): DeferredDelete {
  if (pending.token === token) return pending;
  const { id, call, resolve } = pending;
  return { id, call, resolve, reject: (reason) => pending.reject(withUnknownOutcome(reason)), token };
}

// These two codes mean that nothing was done. Other errors, for a cancelled call or a protected plant, stay unchanged.
function withUnknownOutcome(reason: unknown): unknown {
  const { code } = ConnectError.from(reason);
  return code === Code.Unavailable || code === Code.ResourceExhausted ? outcomeUnknown(reason) : reason;
}

/** Options of {@link DeferredDeletes}. */
export interface DeferredDeletesOptions {
  /**
   * Attempts deletions and hands those that must wait longer back to {@link DeferredDeletes.add}. All have the same
   * token, and their plants are on the same worker. Must settle by `deadlineMs`, on the clock of `performance.now()`.
   */
  readonly commit: (batch: readonly DeferredDelete[], deadlineMs: number) => Promise<Outcomes>;
  readonly workerOf: (id: bigint) => number;
  readonly batchMax: number;
  /** The most deletions that wait; further ones are refused. */
  readonly waitingMax: number;
}

/**
 * Deletions that wait for a locked plant, or for another use of their idempotency key to end. They are attempted again
 * every 50 ms, separately from the queue, so that they do not delay other deletions. After two seconds their
 * callers get `Unavailable`.
 */
export class DeferredDeletes {
  readonly #options: DeferredDeletesOptions;
  readonly #waiting: DeferredDelete[] = [];
  /** For each deletion, the end of its wait and its deadline, on the clock of `performance.now()`. */
  readonly #limits = new WeakMap<DeferredDelete, { readonly waitEndMs: number; readonly deadlineMs: number }>();
  #attempting: Promise<void> | undefined;
  #attempted = 0;

  constructor(options: DeferredDeletesOptions) {
    this.#options = options;
  }

  /**
   * Whether no deletion waits here. If any does, batches do not wait for locks, because other plants may be locked,
   * too.
   */
  get isEmpty(): boolean {
    return this.#attempting === undefined;
  }

  /** The number of deletions that wait or are being attempted. */
  get waiting(): number {
    return this.#waiting.length + this.#attempted;
  }

  /**
   * Adds a deletion, which is settled by `deadlineMs`, on the clock of `performance.now()`. A deletion that is handed
   * back keeps its deadline; its two seconds start again only if it has become in doubt meanwhile.
   */
  add(pending: DeferredDelete, deadlineMs: number): void {
    if (this.#waiting.length >= this.#options.waitingMax) return pending.reject(queueFull());
    if (!this.#limits.has(pending)) {
      this.#limits.set(pending, { waitEndMs: performance.now() + deferredMsMax, deadlineMs });
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
  #hasTime(pending: DeferredDelete): boolean {
    const { aborted, reason } = pending.call.context.signal;
    const { waitEndMs = 0, deadlineMs = 0 } = this.#limits.get(pending) ?? {};
    // With less time than an attempt takes, its batch would be cancelled with an unknown outcome.
    const isTimeOver = performance.now() >= Math.min(waitEndMs, deadlineMs - attemptTotalMs);
    if (aborted) pending.reject(reason);
    else if (isTimeOver)
      pending.reject(
        storeUnavailable("another transaction holds a lock on the plant, or uses the same idempotency key"),
      );
    return !aborted && !isTimeOver;
  }

  async #attempt(batch: readonly DeferredDelete[]): Promise<void> {
    try {
      const deadlineMs = Math.min(...batch.map((one) => this.#limits.get(one)?.deadlineMs ?? 0));
      const outcomes = await this.#options.commit(batch, deadlineMs);
      batch.forEach(({ resolve }, i) => outcomes[i] !== undefined && resolve(outcomes[i]));
    } catch (reason) {
      for (const pending of batch) pending.reject(reason);
    }
  }
}
