import { sliceMax } from "./retention.ts";

// The rest after a slice, as a multiple of the time that the slice took. Deletions hardly miss a tenth of the time, in
// which several times as many records are dropped as a lone caller adds.
const rest = 9;

// At full load that would be fewer than deletions add, and the file would grow for as long as it lasts.
const droppedPerDeletion = 1.25;

/**
 * Decides when the next slice of old records is dropped. Deletions wait meanwhile, so beside them a slice is followed by
 * a rest, which ends early where records would otherwise come faster than they go. Without deletions there is none.
 */
export class DropPace {
  #nextMs = Number.NEGATIVE_INFINITY;
  #isMore = false;
  #hasDeleted = false;
  /** How many records are to be dropped without a rest. */
  #owed = 0;

  /** When the next slice is due, in milliseconds. */
  get nextMs(): number {
    return this.#owed >= sliceMax ? Number.NEGATIVE_INFINITY : this.#nextMs;
  }

  /** Takes note of deletions. */
  deleted(count: number): void {
    this.#hasDeleted = true;
    if (this.#isMore) this.#owed += count * droppedPerDeletion;
  }

  /** Takes note of how long a slice took, and of when the next is due, in milliseconds: zero if there is more. */
  dropped(tookMs: number, dueMs: number, nowMs: number): void {
    this.#isMore = dueMs === 0;
    this.#owed = this.#isMore ? Math.max(0, this.#owed - sliceMax) : 0;
    this.#nextMs = nowMs + (this.#isMore && this.#hasDeleted ? rest * tookMs : dueMs);
    this.#hasDeleted = false;
  }
}
