import { setImmediate as nextTurn } from "node:timers/promises";
import type { ConnectError } from "@connectrpc/connect";
import {
  queueFull,
  storeUnavailable,
  subjectNotRecordable,
  type DeleteCall,
  type WaitingDeletions,
} from "../service/index.ts";
import type { OnBatch } from "./durable-store-options.ts";
import { isStorable } from "./storable-text.ts";
import { QueueLimit } from "./queue-limit.ts";

/** A deletion that is queued or being committed. */
export interface PendingDelete {
  readonly id: bigint;
  readonly call: DeleteCall;
  /** Reports the outcome. Only the first call of `resolve` or `reject` counts. */
  readonly resolve: (deleted: boolean) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Whether each deletion of a batch has removed its plant, in the order of the batch. `undefined` means that the queue
 * must not settle the deletion: the store has already resolved or rejected it, or attempts it in a later batch and then
 * settles it.
 */
export type Outcomes = readonly (boolean | undefined)[];

/** Options of a {@link DeleteQueue}. */
export interface DeleteQueueOptions {
  /** Makes one batch durable. If it rejects, every caller of the batch gets the reason, a `ConnectError`. */
  readonly commit: (batch: readonly PendingDelete[]) => Promise<Outcomes>;
  /** The maximum number of deletions in one batch. */
  readonly batchMax: number;
  /** The most deletions that may wait for a batch; further ones are refused. Under overload, the limit is lower. */
  readonly waitingMax: number;
  /** The most batches that are committed at the same time. */
  readonly inFlightMax: number;
  readonly onBatch?: OnBatch | undefined;
  /** The clock, in milliseconds; by default one that never jumps. */
  readonly nowMs?: () => number;
}

/**
 * The most deletions that are settled in one turn of the event loop: about half a millisecond of work, so that other
 * requests do not wait for the whole batch, and the first callers can join the next batch.
 */
const settledPerTurn = 64;

/**
 * Groups concurrent deletions into batches, so that many share one commit.
 *
 * The next batch contains the deletions that arrived while the last one was being committed. So there is no timer, a
 * single deletion is sent immediately, and batches grow only with the load. Deletions are committed in order of
 * arrival.
 */
export class DeleteQueue {
  readonly #options: DeleteQueueOptions;
  readonly #waiting: PendingDelete[] = [];
  readonly #limit: QueueLimit;
  readonly #nowMs: () => number;
  #inFlight = 0;
  /** The number of batches with unsettled deletions. */
  #unsettledBatches = 0;
  readonly #drained = Promise.withResolvers<void>();
  #closed = false;

  constructor(options: DeleteQueueOptions) {
    this.#options = options;
    this.#limit = new QueueLimit(options.waitingMax);
    this.#nowMs = options.nowMs ?? (() => performance.now());
  }

  /**
   * Deletes a plant and resolves to whether it existed.
   *
   * @throws ConnectError `ResourceExhausted` when too many deletions wait, `Unavailable` after `close`,
   * `FailedPrecondition` for an idempotency key of a subject that cannot be recorded unchanged, any error of `commit`,
   * and the abort reason when the call was cancelled while it was queued
   */
  delete(id: bigint, call: DeleteCall): Promise<boolean> {
    if (this.#closed) return Promise.reject(storeUnavailable());
    // Plant ids have at most 64 bits. A larger id must neither fail its batch nor be truncated.
    if (BigInt.asIntN(64, id) !== id) return Promise.resolve(false);
    // A key belongs to one subject, so two subjects must not have the same record.
    if (call.idempotencyKey !== undefined && !isStorable(call.subject)) return Promise.reject(subjectNotRecordable());
    if (this.#waiting.length >= this.#limit.current) return Promise.reject(this.#refuse());
    return new Promise((resolve, reject) => {
      const pending = { id, call, resolve, reject };
      // Invariant: no deletion waits while fewer than `inFlightMax` batches are in flight.
      if (this.#inFlight < this.#options.inFlightMax) void this.#commit([pending]);
      else this.#waiting.push(pending);
    });
  }

  /** The number of deletions that wait for a batch, and its current limit. */
  get waiting(): Pick<WaitingDeletions, "forBatch" | "forBatchMax"> {
    return { forBatch: this.#waiting.length, forBatchMax: this.#limit.current };
  }

  /** Refuses new deletions. Resolves once every earlier deletion is settled, or left to the store to settle. */
  close(): Promise<void> {
    this.#closed = true;
    if (this.#unsettledBatches === 0) this.#drained.resolve();
    return this.#drained.promise;
  }

  async #commit(batch: readonly PendingDelete[]): Promise<void> {
    this.#inFlight++;
    this.#unsettledBatches++;
    const onEnd = this.#options.onBatch?.(batch.map(({ call }) => call));
    const sentMs = this.#nowMs();
    const settle = await this.#options.commit(batch).then(
      (outcomes) => {
        this.#updateLimit(batch.length, sentMs);
        onEnd?.();
        return (pending: PendingDelete, i: number) => {
          const outcome = outcomes[i];
          if (outcome !== undefined) pending.resolve(outcome);
        };
      },
      (reason: unknown) => {
        onEnd?.(reason);
        return (pending: PendingDelete) => pending.reject(reason);
      },
    );
    this.#inFlight--;
    // The next batch is sent before the callers of this batch continue, so that the store never waits for them.
    this.#commitWaiting();
    for (const [i, pending] of batch.entries()) {
      if (i > 0 && i % settledPerTurn === 0) await nextTurn();
      settle(pending, i);
    }
    this.#unsettledBatches--;
    if (this.#closed && this.#unsettledBatches === 0) this.#drained.resolve();
  }

  #updateLimit(size: number, sentMs: number): void {
    const nowMs = this.#nowMs();
    const isLast = this.#inFlight === 1 && this.#waiting.length === 0;
    this.#limit.recordCommit({ size, durationMs: nowMs - sentMs, isLast }, nowMs);
    // The newest ones are refused, because they have waited for the shortest time.
    for (const pending of this.#waiting.splice(this.#limit.kept)) pending.reject(this.#refuse());
  }

  #refuse(): ConnectError {
    this.#limit.recordRefusal(this.#nowMs());
    return queueFull();
  }

  #commitWaiting(): void {
    while (this.#waiting.length > 0 && this.#inFlight < this.#options.inFlightMax) {
      const batch = this.#takeBatch();
      if (batch.length > 0) void this.#commit(batch);
    }
  }

  #takeBatch(): PendingDelete[] {
    return this.#waiting.splice(0, Math.min(this.#options.batchMax, this.#limit.batchMax)).filter(isNotAborted);
  }
}

/**
 * Returns whether the call has not been cancelled; rejects the deletion otherwise. Checked when a deletion leaves the
 * queue: a listener on every signal would cost as much as the queue itself, for a call that no caller waits for. A
 * deletion that was not queued is not checked, because reading its signal would create it.
 */
function isNotAborted({ call, reject }: PendingDelete): boolean {
  const { aborted, reason } = call.context.signal;
  if (aborted) reject(reason);
  return !aborted;
}
