import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import {
  idempotencyKeyReused,
  outcomeUnknown,
  plantProtected,
  queueFull,
  storeUnavailable,
  subjectNotRecordable,
  type DeleteCall,
  type PlantStore,
  type WaitingDeletions,
} from "../../service/index.ts";
import {
  type Backend,
  type BatchResult,
  batchTimeoutMs,
  type Outcome,
  problemOf,
  type Requested,
  isStorable,
} from "../contract/backend.ts";
import type { OnBatch } from "../contract/store-options.ts";

/** Default maximum number of queued deletions. A store deletes this number of plants in 0.1 to 0.3 s. */
const maxWaitingDefault = 16_384;

/** If the oldest queued deletion has waited for longer when a batch ends, in milliseconds, new ones are refused. */
export const maxWaitMs = 1_000;

/** Maximum time for which a locked plant is tried again, in milliseconds. A longer transaction is probably stuck. */
export const maxLockedMs = 2_000;

// A full batch takes a PostgreSQL server about 10 ms, or a storage thread 15 ms. Larger batches would add latency.
// Batches grow from the first size, and shrink if they take longer than `slowMs`, so that triggers that take long for
// each plant do not exceed the database's timeout for a statement.
const maxBatch = 1_024;
const minBatch = 64;
const slowMs = 2_000;

// Interval between attempts to delete locked plants, which costs the server little, and the minimum time for an attempt,
// in milliseconds. The outcome of a shorter attempt could be unknown.
const lockedIntervalMs = 50;
const minLockedAttemptMs = 1_000;

// Maximum number of deletions that are settled per event-loop turn, in half a millisecond, so that other requests need
// not wait for the whole batch, and the first callers can join the next batch.
const settledPerTurn = 64;

/** Options for a {@link DeleteQueue}. */
export interface QueueOptions {
  readonly onBatch?: OnBatch | undefined;
  /** Maximum number of queued deletions, and of locked ones. Default {@link maxWaitingDefault}. */
  readonly maxWaiting?: number;
}

/** A deletion whose caller waits. Times are on the `performance.now()` clock. */
interface Waiting extends Requested {
  readonly queuedMs: number;
  readonly resolve: (deleted: boolean) => void;
  readonly reject: (reason: unknown) => void;
  /** When the deletion's first batch, including its retries, must end. Infinity before the first batch. */
  deadlineMs: number;
  /** When the plant was first found locked with the current number of doubts. */
  locked?: { readonly sinceMs: number; readonly doubts: number };
}

/**
 * Groups concurrent deletions into batches, in order of arrival, so that many share one commit. The next batch contains
 * the deletions that arrived during the last commit. When the store is idle, it contains those of one event-loop turn:
 * requests that arrive together, or callers that continue after the same batch. There is no timer. Only this class
 * settles callers. Locked plants are tried again in separate batches, so that they delay no other.
 */
export class DeleteQueue {
  readonly #backend: Backend;
  readonly #onBatch: OnBatch | undefined;
  readonly #maxWaiting: number;
  readonly #maxInFlight: number;
  readonly #waiting: Waiting[] = [];
  #inFlight = 0;
  /** Whether a batch is sent at the end of this event-loop turn. */
  #isSending = false;
  /** Maximum number of deletions in the next batch. */
  #maxBatch = minBatch;
  /** Whether the oldest deletion had waited for too long when the last batch ended. */
  #isLate = false;
  readonly #locked: Waiting[] = [];
  /** Number of locked deletions, including deletions that are being attempted. */
  #lockedCount = 0;
  #isRetrying = false;
  /** Number of deletions that are not settled. */
  #open = 0;
  #closing: PromiseWithResolvers<void> | undefined;

  constructor(backend: Backend, { onBatch, maxWaiting = maxWaitingDefault }: QueueOptions) {
    this.#backend = backend;
    this.#onBatch = onBatch;
    this.#maxWaiting = maxWaiting;
    this.#maxInFlight = backend.lanes?.maxInFlight ?? 1;
  }

  get waiting(): WaitingDeletions {
    return { forBatch: this.#waiting.length, maxForBatch: this.#maxWaiting, forLock: this.#lockedCount };
  }

  /** Deletes a plant, and resolves to whether it existed. @throws ConnectError as {@link PlantStore.delete} */
  delete(id: bigint, call: DeleteCall): Promise<boolean> {
    // Plant ids have at most 64 bits. A larger id must neither be truncated nor fail the batch.
    if (BigInt.asIntN(64, id) !== id) return Promise.resolve(false);
    // An idempotency key belongs to one subject, so two subjects must not have the same record.
    if (call.idempotencyKey !== undefined && !isStorable(call.subject)) return Promise.reject(subjectNotRecordable());
    if (this.#isLate || this.#waiting.length >= this.#maxWaiting) return Promise.reject(queueFull());
    return new Promise((resolve, reject) => {
      this.#open++;
      const queuedMs = performance.now();
      this.#waiting.push({ id, call, doubts: [], queuedMs, resolve, reject, deadlineMs: Infinity });
      if (this.#inFlight < this.#maxInFlight) this.#sendSoon();
    });
  }

  /** Resolves once every earlier deletion is settled. The caller must refuse new deletions. */
  close(): Promise<void> {
    this.#closing ??= Promise.withResolvers();
    if (this.#open === 0) this.#closing.resolve();
    return this.#closing.promise;
  }

  #sendSoon(): void {
    if (this.#isSending) return;
    this.#isSending = true;
    setImmediate(() => {
      this.#isSending = false;
      this.#sendNext();
    });
  }

  // Invariant: no deletion waits for longer than a turn while fewer than `maxInFlight` batches are in flight.
  #sendNext(): void {
    while (this.#waiting.length > 0 && this.#inFlight < this.#maxInFlight) {
      const batch = this.#waiting.splice(0, this.#maxBatch).filter((one) => !this.#rejectCancelled(one));
      if (batch.length > 0) void this.#send(batch);
    }
    // If every late deletion was cancelled, no batch ends later that would accept deletions again.
    if (this.#inFlight === 0) this.#isLate = false;
  }

  async #send(batch: readonly Waiting[]): Promise<void> {
    this.#inFlight++;
    const onEnd = this.#onBatch?.(batch.map(({ call }) => call));
    const sentMs = performance.now();
    const result = await this.#commit(batch);
    const { outcomes, failure } = result;
    if (performance.now() - sentMs > slowMs) this.#maxBatch = Math.max(1, batch.length >> 1);
    else this.#maxBatch = Math.max(this.#maxBatch, Math.min(maxBatch, 2 * batch.length));
    onEnd?.(failure && errors[outcomes.includes("unavailable") ? "unavailable" : "unknown"](0n, failure));
    this.#inFlight--;
    // A failed batch does not show an overload, because the store may be restarting.
    const waitedMs = performance.now() - (this.#waiting[0]?.queuedMs ?? Infinity);
    this.#isLate = failure === undefined && waitedMs > maxWaitMs;
    // Sends the next batch before the callers of this batch continue, so that the store never waits for callers.
    this.#sendNext();
    await this.#settle(batch, result);
  }

  async #commit(batch: readonly Waiting[]): Promise<BatchResult> {
    // A problem may have been found while the deletions were queued.
    const problem = problemOf(this.#backend);
    if (problem !== undefined) return { outcomes: batch.map(() => "unavailable"), failure: problem };
    for (const one of batch) one.deadlineMs = Math.min(one.deadlineMs, performance.now() + batchTimeoutMs);
    const deadlineMs = Math.min(...batch.map((one) => one.deadlineMs));
    // A backend rejects only because of a bug, which the warning reports. Callers need an outcome in any case.
    return await this.#backend.commit(batch, deadlineMs).catch((failure: unknown) => {
      process.emitWarning(failure instanceof Error ? failure : String(failure));
      return { outcomes: [], failure };
    });
  }

  async #settle(batch: readonly Waiting[], { outcomes, causes, failure }: BatchResult): Promise<void> {
    for (const [i, one] of batch.entries()) {
      if (i > 0 && i % settledPerTurn === 0) await nextTurn();
      const outcome = outcomes[i] ?? "unknown";
      if (outcome === "locked") this.#addLocked(one);
      else if (outcome === "deleted" || outcome === "absent") this.#end(one, () => one.resolve(outcome === "deleted"));
      else if (outcome !== "unavailable" || !this.#rejectCancelled(one)) {
        const isOfBatch = outcome === "unavailable" || outcome === "unknown";
        this.#fail(one, outcome, causes?.[i] ?? (isOfBatch ? failure : undefined));
      }
    }
  }

  #addLocked(one: Waiting): void {
    if (one.locked === undefined && this.#lockedCount >= this.#maxWaiting) return this.#fail(one, "full");
    if (one.locked === undefined) this.#lockedCount++;
    // An attempt that may still run holds the plant's lock, so its end is waited for.
    if (one.locked?.doubts !== one.doubts.length)
      one.locked = { sinceMs: performance.now(), doubts: one.doubts.length };
    this.#locked.push(one);
    if (!this.#isRetrying) void this.#retryLocked();
  }

  async #retryLocked(): Promise<void> {
    this.#isRetrying = true;
    let startMs = performance.now();
    while (this.#locked.length > 0) {
      await sleep(lockedIntervalMs);
      // Deletions that the last retries did not include are retried, however long these took.
      const sinceMs = Math.min(startMs, performance.now() - maxLockedMs);
      startMs = performance.now();
      const retried = this.#locked.splice(0);
      // A batch that only finds locks is quick. A large batch that finds none could exceed its deadline.
      while (retried.length > 0) {
        const batch = retried.splice(0, minBatch).filter((one) => this.#isRetried(one, sinceMs));
        if (batch.length > 0) await this.#settle(batch, await this.#commit(batch));
      }
    }
    this.#isRetrying = false;
  }

  /** @param sinceMs - the earliest time since which a plant may be locked */
  #isRetried(one: Waiting, sinceMs: number): boolean {
    if (this.#rejectCancelled(one)) return false;
    const isLockedBriefly = (one.locked?.sinceMs ?? 0) > sinceMs;
    if (isLockedBriefly && performance.now() < one.deadlineMs - minLockedAttemptMs) return true;
    const cause = "another transaction holds a lock on the plant, or uses the same idempotency key";
    this.#fail(one, "unavailable", isLockedBriefly ? "the deadline passed after the plant was locked" : cause);
    return false;
  }

  #rejectCancelled(one: Waiting): boolean {
    const { aborted, reason } = one.call.context.signal;
    if (aborted) this.#end(one, () => one.reject(reason));
    return aborted;
  }

  #fail(one: Waiting, outcome: keyof typeof errors, cause?: unknown): void {
    const isUnknown = one.doubts.length > 0 && (outcome === "unavailable" || outcome === "full");
    this.#end(one, () => one.reject(errors[isUnknown ? "unknown" : outcome](one.id, cause)));
  }

  #end(one: Waiting, settle: () => void): void {
    settle();
    if (one.locked !== undefined) this.#lockedCount--;
    if (--this.#open === 0) this.#closing?.resolve();
  }
}

const errors: Readonly<
  Record<Exclude<Outcome, "deleted" | "absent" | "locked"> | "full", (id: bigint, cause: unknown) => Error>
> = {
  protected: plantProtected,
  "key-reused": idempotencyKeyReused,
  unavailable: (_, cause) => storeUnavailable(cause),
  unknown: (_, cause) => outcomeUnknown(cause),
  full: queueFull,
};

/** Returns a plant store for a backend. The store has a queue per lane. */
export function queuedStore(backend: Backend, options: QueueOptions = {}): PlantStore {
  const queues = new Map<number, DeleteQueue>();
  let isClosed = false;
  return {
    get problem() {
      const { name, pending } = backend;
      return problemOf(backend) ?? (pending && `${name}: ${pending}`);
    },
    get isChecking() {
      return backend.pending !== undefined;
    },
    get needsRestart() {
      const { problem } = backend;
      return problem?.isTemporary === false && problem.needsOperator !== true;
    },
    get waiting() {
      let [forBatch, maxForBatch, forLock] = [0, 0, 0];
      for (const { waiting } of queues.values()) {
        forBatch += waiting.forBatch;
        forLock += waiting.forLock;
        maxForBatch += waiting.maxForBatch;
      }
      return { forBatch, maxForBatch: maxForBatch || (options.maxWaiting ?? maxWaitingDefault), forLock };
    },
    get connections() {
      return backend.connections;
    },
    get file() {
      return backend.file;
    },
    // Not an async function, because an async function would use more memory per waiting call.
    delete(id, call) {
      const problem = problemOf(backend);
      if (isClosed || problem !== undefined) return Promise.reject(storeUnavailable(problem));
      const lane = backend.lanes?.of(id) ?? 0;
      const queue = queues.get(lane) ?? new DeleteQueue(backend, options);
      queues.set(lane, queue);
      return queue.delete(id, call);
    },
    async close() {
      isClosed = true;
      await Promise.all([...queues.values()].map((queue) => queue.close()));
      await backend.close();
    },
  };
}
