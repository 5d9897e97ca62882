import { setImmediate as nextTurn } from "node:timers/promises";
import { storeUnavailable, subjectNotRecordable, type DeleteCall, type WaitingDeletions } from "../../service/index.ts";
import { type Backend, batchTimeoutMs } from "../contract/backend.ts";
import { Deletion, endings, type ErrorEnding } from "../contract/deletion.ts";
import type { OnBatch } from "../contract/durable-store-options.ts";
import { isStorable } from "../contract/storable-text.ts";
import { commitBatch } from "./commit-batch.ts";
import type { DeferredDeletes } from "./deferred-deletes.ts";
import { QueueLimit } from "./queue-limit.ts";

/** Options for a {@link DeleteQueue}. */
export interface DeleteQueueOptions {
  /** Maximum number of deletions in a batch. */
  readonly batchMax: number;
  /** Maximum number of waiting deletions. Further deletions are refused. Under overload, the limit is lower. */
  readonly waitingMax: number;
  readonly onBatch?: OnBatch | undefined;
}

// Maximum number of deletions that are settled per event-loop turn, which takes about half a millisecond. Other
// requests need not wait for the whole batch, and the first callers can join the next batch.
const settledPerTurn = 64;

/**
 * Groups concurrent deletions into batches, in order of arrival, so that many share one commit. The next batch contains
 * the deletions that arrived during the last commit. Without a timer, a single deletion is sent immediately.
 */
export class DeleteQueue {
  readonly #backend: Backend;
  readonly #deferred: DeferredDeletes;
  readonly #options: DeleteQueueOptions;
  readonly #waiting: Deletion[] = [];
  readonly #limit: QueueLimit;
  readonly #inFlightMax: number;
  #inFlight = 0;
  /** Number of batches with deletions that are neither settled nor deferred. */
  #openBatches = 0;
  readonly #drained = Promise.withResolvers<void>();
  #closed = false;

  constructor(backend: Backend, deferred: DeferredDeletes, options: DeleteQueueOptions) {
    this.#backend = backend;
    this.#deferred = deferred;
    this.#options = options;
    this.#limit = new QueueLimit(options.waitingMax);
    this.#inFlightMax = backend.lanes?.inFlightMax ?? 1;
  }

  /**
   * Deletes a plant and resolves to whether it existed.
   *
   * @throws ConnectError `ResourceExhausted` when too many deletions wait, `Unavailable` after `close`, and
   * `FailedPrecondition` if the call has an idempotency key and its subject cannot be stored unchanged. Throws the
   * abort reason if the call was cancelled in the queue, and otherwise the error of the deletion's ending
   */
  delete(id: bigint, call: DeleteCall): Promise<boolean> {
    if (this.#closed) return Promise.reject(storeUnavailable());
    // Plant ids have at most 64 bits. A larger id must neither be truncated nor fail the batch.
    if (BigInt.asIntN(64, id) !== id) return Promise.resolve(false);
    // An idempotency key belongs to one subject, so two subjects must not have the same record.
    if (call.idempotencyKey !== undefined && !isStorable(call.subject)) return Promise.reject(subjectNotRecordable());
    if (this.#waiting.length >= this.#limit.current) return Promise.reject(this.#refuse().error);
    return new Promise((resolve, reject) => {
      const deletion = new Deletion(id, call, resolve, reject);
      // Invariant: no deletion waits while fewer than `inFlightMax` batches are in flight.
      if (this.#inFlight < this.#inFlightMax) void this.#commit([deletion]);
      else this.#waiting.push(deletion);
    });
  }

  get waiting(): Pick<WaitingDeletions, "forBatch" | "forBatchMax"> {
    return { forBatch: this.#waiting.length, forBatchMax: this.#limit.current };
  }

  /** Refuses new deletions. Resolves once every earlier deletion is settled or deferred. */
  close(): Promise<void> {
    this.#closed = true;
    if (this.#openBatches === 0) this.#drained.resolve();
    return this.#drained.promise;
  }

  async #commit(batch: readonly Deletion[]): Promise<void> {
    this.#inFlight++;
    this.#openBatches++;
    for (const one of batch) one.send();
    const onEnd = this.#options.onBatch?.(batch.map(({ call }) => call));
    const sentMs = performance.now();
    const deadlineMs = sentMs + batchTimeoutMs;
    const failure = await commitBatch(this.#backend, batch, { deadlineMs, isCareful: !this.#deferred.isEmpty });
    if (failure === undefined) this.#updateLimit(batch.length, sentMs);
    onEnd?.(failure?.error);
    for (const one of batch) if (one.isDeferred) this.#deferred.add(one, deadlineMs);
    const ended = batch.filter(({ state }) => state === "ended");
    this.#inFlight--;
    // Sends the next batch before the callers of this batch continue, so that the store never waits for callers.
    this.#commitWaiting();
    for (const [i, one] of ended.entries()) {
      if (i > 0 && i % settledPerTurn === 0) await nextTurn();
      one.settle();
    }
    this.#openBatches--;
    if (this.#closed && this.#openBatches === 0) this.#drained.resolve();
  }

  #updateLimit(size: number, sentMs: number): void {
    const nowMs = performance.now();
    const isLast = this.#inFlight === 1 && this.#waiting.length === 0;
    this.#limit.recordCommit({ size, durationMs: nowMs - sentMs, isLast }, nowMs);
    // Refuses the newest deletions, because the newest have waited for the shortest time.
    for (const one of this.#waiting.splice(this.#limit.kept)) one.end(this.#refuse());
  }

  #refuse(): ErrorEnding {
    this.#limit.recordRefusal(performance.now());
    return endings.queueFull();
  }

  #commitWaiting(): void {
    while (this.#waiting.length > 0 && this.#inFlight < this.#inFlightMax) {
      const batch = this.#takeBatch();
      if (batch.length > 0) void this.#commit(batch);
    }
  }

  // Checks for cancellation when a deletion leaves the queue. A listener on every signal would cost as much as the
  // queue itself. A deletion that was not queued is not checked, because reading `signal` would create the signal.
  #takeBatch(): Deletion[] {
    const taken = this.#waiting.splice(0, Math.min(this.#options.batchMax, this.#limit.planBatch()));
    return taken.filter((one) => !one.endIfCancelled());
  }
}
