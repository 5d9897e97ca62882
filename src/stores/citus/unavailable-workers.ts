import { elapsedMsSince, type OnUpkeep } from "../contract/upkeep.ts";
import type { LaneReports } from "../postgres/delete/placement.ts";

/**
 * Reports once when a worker is unavailable and once when it has recovered. Readiness does not depend on it, and
 * deletions are still sent to the worker.
 */
export class UnavailableWorkers implements LaneReports {
  readonly #onUpkeep: OnUpkeep | undefined;
  /** When each worker was found to be unavailable, on the `performance.now()` clock. */
  readonly #unavailableSinceMs = new Map<number, number>();
  /** When each worker has last committed a batch, on the same clock. */
  readonly #committedAtMs = new Map<number, number>();

  constructor(onUpkeep?: OnUpkeep) {
    this.#onUpkeep = onUpkeep;
  }

  /** The worker is not the cause if it has committed another batch since this one began. */
  recordFailure(worker: number, problem: string, begunMs: number): void {
    if (this.#unavailableSinceMs.has(worker)) return;
    if ((this.#committedAtMs.get(worker) ?? Number.NEGATIVE_INFINITY) >= begunMs) return;
    this.#unavailableSinceMs.set(worker, performance.now());
    this.#onUpkeep?.({ kind: "worker-unavailable", lastedMs: elapsedMsSince(begunMs), problem });
  }

  recordSuccess(worker: number): void {
    this.#committedAtMs.set(worker, performance.now());
    const sinceMs = this.#unavailableSinceMs.get(worker);
    if (sinceMs === undefined) return;
    this.#unavailableSinceMs.delete(worker);
    this.#onUpkeep?.({ kind: "worker-recovered", lastedMs: elapsedMsSince(sinceMs) });
  }
}
