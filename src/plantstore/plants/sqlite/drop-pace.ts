import { sliceMax } from "./retention.ts";

// How many times as long as a slice took the rest after it lasts. A tenth of the time is little to deletions, and drops
// several times as many records as a lone caller adds.
const rest = 9;

// At full load, that would be fewer than deletions add: a file must not grow for as long as that lasts.
const droppedPerDeletion = 1.25;

/**
 * Decides when the next slice of old records is dropped. Deletions wait meanwhile, so beside them a slice is followed by
 * a rest, which ends early where records would otherwise come faster than they go. Beside none there is no rest.
 */
export class DropPace {
  #nextMs = Number.NEGATIVE_INFINITY;
  #isMore = false;
  #hasDeleted = false;
  /** The records to drop before the rest counts. */
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

  /** Takes note of a slice that has taken so long, and of when the next is due, in milliseconds; zero if there is more. */
  dropped(tookMs: number, dueMs: number, nowMs: number): void {
    this.#isMore = dueMs === 0;
    this.#owed = this.#isMore ? Math.max(0, this.#owed - sliceMax) : 0;
    this.#nextMs = nowMs + (this.#isMore && this.#hasDeleted ? rest * tookMs : dueMs);
    this.#hasDeleted = false;
  }
}
