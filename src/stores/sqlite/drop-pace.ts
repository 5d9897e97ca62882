import { sliceMax } from "./retention.ts";

// The pause after a slice, as a multiple of its duration. Deletions hardly lose a tenth of the time, in which several
// times as many records are dropped as a single caller adds.
const pauseFactor = 9;

// At full load, with pauses alone, fewer records would be dropped than deletions add, and the file would grow.
const droppedPerDeletion = 1.25;

/**
 * Decides when the next slice of expired records is dropped. Deletions wait meanwhile, so a slice is followed by a
 * pause, which is shortened if records would otherwise be added faster than dropped. Without deletions there is no
 * pause.
 */
export class DropPace {
  #nextMs = Number.NEGATIVE_INFINITY;
  #isMore = false;
  #hasDeleted = false;
  /** The number of records to drop without a pause. */
  #backlog = 0;

  /** When the next slice is due, in milliseconds. */
  get nextMs(): number {
    return this.#backlog >= sliceMax ? Number.NEGATIVE_INFINITY : this.#nextMs;
  }

  /** Records deletions. */
  recordDeletions(count: number): void {
    this.#hasDeleted = true;
    if (this.#isMore) this.#backlog += count * droppedPerDeletion;
  }

  /**
   * Records the duration of a slice, and the time until the next is due, in milliseconds: zero if there is more to
   * drop.
   */
  recordSlice(durationMs: number, dueMs: number, nowMs: number): void {
    this.#isMore = dueMs === 0;
    this.#backlog = this.#isMore ? Math.max(0, this.#backlog - sliceMax) : 0;
    this.#nextMs = nowMs + (this.#isMore && this.#hasDeleted ? pauseFactor * durationMs : dueMs);
    this.#hasDeleted = false;
  }
}
