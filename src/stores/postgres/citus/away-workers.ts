import { lastedSince, type OnUpkeep } from "../../upkeep.ts";

/** Reports once when a worker of Citus is lost and once when it is back. Readiness ignores it: the others go on. */
export class AwayWorkers {
  readonly #onUpkeep: OnUpkeep | undefined;
  /** When each worker was found to be lost, on the clock of `performance.now()`. */
  readonly #sinceMs = new Map<number, number>();
  /** When each worker has last committed a batch, on the same clock. */
  readonly #workedAtMs = new Map<number, number>();

  constructor(onUpkeep: OnUpkeep | undefined) {
    this.#onUpkeep = onUpkeep;
  }

  /**
   * Records that a batch for the worker was given up while the store is well otherwise. The worker is not to blame if it
   * has committed another batch since this one began.
   *
   * @param begunMs - when the batch began, on the clock of `performance.now()`
   */
  failed(worker: number, problem: string, begunMs: number): void {
    if (this.#sinceMs.has(worker) || (this.#workedAtMs.get(worker) ?? Number.NEGATIVE_INFINITY) >= begunMs) return;
    this.#sinceMs.set(worker, performance.now());
    this.#onUpkeep?.({ kind: "worker-away", lastedMs: lastedSince(begunMs), problem });
  }

  /** Records that a batch for the worker was committed. */
  worked(worker: number): void {
    this.#workedAtMs.set(worker, performance.now());
    const sinceMs = this.#sinceMs.get(worker);
    if (sinceMs === undefined) return;
    this.#sinceMs.delete(worker);
    this.#onUpkeep?.({ kind: "worker-back", lastedMs: lastedSince(sinceMs) });
  }
}
