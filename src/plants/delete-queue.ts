import { setImmediate as nextTurn } from "node:timers/promises";
import { queueFull, storeAway } from "./errors.ts";
import { abortReasonOf, type DeleteCall } from "./plant-store.ts";

/** A deletion that was taken and was not told its outcome. */
export interface TakenDelete {
  readonly id: bigint;
  readonly call: DeleteCall;
  /** Tells the outcome. Only the first of all calls to `resolve` and `reject` counts. */
  readonly resolve: (deleted: boolean) => void;
  readonly reject: (reason: unknown) => void;
}

/** The outcomes of a batch, in its order: whether this deletion removed the plant. */
export type Outcomes = readonly boolean[];

/** How a store commits what was queued. */
export interface DeleteQueueOptions {
  /**
   * Makes one batch durable. A rejection is what every caller of the batch is told, so it must be a
   * `ConnectError`.
   */
  readonly commit: (batch: readonly TakenDelete[]) => Promise<Outcomes>;
  /** The most deletions in one batch. */
  readonly batchMax: number;
  /** The most deletions that wait for a batch; more are refused. */
  readonly waitingMax: number;
  /** The most batches that are being committed at once. */
  readonly inFlightMax: number;
}

/**
 * Callers of one batch that are told in one turn of the event loop, half a millisecond of answers: a request that has
 * nothing to do with the batch need not wait for all of it, and who is told first is back in time for the next one. The
 * last of a batch of 1,024 are told after 15 turns, with whatever else is done in those.
 */
const toldAtOnce = 64;

/**
 * Groups concurrent deletions into batches, so that many share one commit.
 *
 * The next batch is whatever was queued while the last one committed: nothing waits for a timer, a
 * lone deletion leaves at once, and batches grow only with the load. Batches are committed in order of arrival.
 */
export class DeleteQueue {
  readonly #options: DeleteQueueOptions;
  readonly #waiting: TakenDelete[] = [];
  #inFlight = 0;
  /** Batches of which somebody is still to be told the outcome. */
  #untold = 0;
  readonly #drained = Promise.withResolvers<void>();
  #closed = false;

  constructor(options: DeleteQueueOptions) {
    this.#options = options;
  }

  /**
   * Takes a deletion and resolves to whether it removed the plant.
   *
   * @throws ConnectError `ResourceExhausted` when too many wait, `Unavailable` after `close`, what `commit`
   * rejects with, and the reason of the abort when the call has been given up by the time its turn comes
   */
  delete(id: bigint, call: DeleteCall): Promise<boolean> {
    if (this.#closed) return Promise.reject(storeAway());
    // No plant has an id of more than 64 bits. It must neither fail the batch it is in nor lose its upper bits.
    if (BigInt.asIntN(64, id) !== id) return Promise.resolve(false);
    if (this.#waiting.length >= this.#options.waitingMax) return Promise.reject(queueFull());
    return new Promise((resolve, reject) => {
      this.#waiting.push({ id, call, resolve, reject });
      this.#commitWaiting();
    });
  }

  /** Takes nothing more, and resolves once all that was taken has its outcome. */
  close(): Promise<void> {
    this.#closed = true;
    if (this.#untold === 0) this.#drained.resolve();
    return this.#drained.promise;
  }

  async #commit(batch: readonly TakenDelete[]): Promise<void> {
    this.#inFlight++;
    this.#untold++;
    const settle = await this.#options.commit(batch).then(
      (outcomes) => (taken: TakenDelete, i: number) => taken.resolve(outcomes[i] === true),
      (reason: unknown) => (taken: TakenDelete) => taken.reject(reason),
    );
    this.#inFlight--;
    // The next batch leaves before the callers of this one run, so the store never waits for them.
    this.#commitWaiting();
    for (const [i, taken] of batch.entries()) {
      if (i > 0 && i % toldAtOnce === 0) await nextTurn();
      settle(taken, i);
    }
    this.#untold--;
    if (this.#closed && this.#untold === 0) this.#drained.resolve();
  }

  #commitWaiting(): void {
    while (this.#waiting.length > 0 && this.#inFlight < this.#options.inFlightMax) {
      const batch = this.#takeBatch();
      if (batch.length > 0) void this.#commit(batch);
    }
  }

  #takeBatch(): TakenDelete[] {
    return this.#waiting.splice(0, this.#options.batchMax).filter(isWanted);
  }
}

/**
 * Whether the call still wants to be sent; one that does not is told so.
 *
 * Asked once, when its turn has come: what was sent may happen. To listen to each signal meanwhile costs as much as
 * queueing, and whoever gave the call up does not wait for it.
 */
function isWanted({ call, reject }: TakenDelete): boolean {
  const reason = abortReasonOf(call);
  if (reason !== undefined) reject(reason);
  return reason === undefined;
}
