import { sliceMax } from "./retention.ts";

// The pause after a slice, as a multiple of its duration. So dropping takes at most a tenth of the time, in which it
// drops several times as many records as a single caller adds.
const pauseFactor = 9;

// The records dropped without pauses, per deletion. At full load, with a pause after each slice, fewer records would be
// dropped than added, and the file would grow.
const droppedPerDeletion = 1.25;

/**
 * Decides when the next slice of expired records is dropped. Deletions wait while a slice is dropped, so a pause
 * follows it. The pause is shortened if records would otherwise be added faster than dropped. Without deletions there
 * is no pause.
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
   * Records the duration of a slice, and the time until the next slice is due, in milliseconds: zero if there are more
   * expired records.
   */
  recordSlice(durationMs: number, dueMs: number, nowMs: number): void {
    this.#isMore = dueMs === 0;
    this.#backlog = this.#isMore ? Math.max(0, this.#backlog - sliceMax) : 0;
    this.#nextMs = nowMs + (this.#isMore && this.#hasDeleted ? pauseFactor * durationMs : dueMs);
    this.#hasDeleted = false;
  }
}
