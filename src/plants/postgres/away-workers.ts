import { lastedSince, type OnUpkeep } from "../upkeep.ts";

/** Tells when a worker of Citus is lost and when it is back, once each. The others go on, so readiness does not. */
export class AwayWorkers {
  readonly #onUpkeep: OnUpkeep | undefined;
  /** When each was known to be lost, on the clock of `performance.now()`. */
  readonly #sinceMs = new Map<number, number>();

  constructor(onUpkeep: OnUpkeep | undefined) {
    this.#onUpkeep = onUpkeep;
  }

  /** Whether there are any. */
  get areThere(): boolean {
    return this.#sinceMs.size > 0;
  }

  /**
   * A batch for the worker was given up, which began at a time on the clock of `performance.now()`, and the store is well
   * otherwise.
   */
  failed(worker: number, problem: string, begunMs: number): void {
    if (this.#sinceMs.has(worker)) return;
    this.#sinceMs.set(worker, performance.now());
    this.#onUpkeep?.({ kind: "worker-away", lastedMs: lastedSince(begunMs), problem });
  }

  /** A batch for the worker was committed. */
  worked(worker: number): void {
    const sinceMs = this.#sinceMs.get(worker);
    if (sinceMs === undefined) return;
    this.#sinceMs.delete(worker);
    this.#onUpkeep?.({ kind: "worker-back", lastedMs: lastedSince(sinceMs) });
  }
}
