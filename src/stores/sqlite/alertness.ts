/** How long a thread takes to wake up, in milliseconds. */
const wakingMs = 0.05;

/**
 * Decides whether the storage thread stays awake for the next deletion. A caller that deletes one plant after another
 * is back in a moment, and need not wait until the thread has woken up. To stay awake for one that takes longer would
 * cost as much as the deletion, and gain nothing.
 */
export class Alertness {
  readonly #awakeMsMax: number;
  #awakeMs = 0;
  #answeredMs = Number.NEGATIVE_INFINITY;

  /** @param awakeMsMax - how soon a caller must be back, in milliseconds; zero never to stay awake */
  constructor(awakeMsMax: number) {
    this.#awakeMsMax = awakeMsMax;
  }

  /** How long to stay awake for the next question, in milliseconds. */
  get awakeMs(): number {
    return this.#awakeMs;
  }

  /** Takes note of a question, and whether it is a deletion that came alone. */
  asked(isLone: boolean, nowMs: number): void {
    const soonMs = this.#awakeMs > 0 ? this.#awakeMs : this.#awakeMsMax + wakingMs;
    this.#awakeMs = isLone && nowMs - this.#answeredMs < soonMs ? this.#awakeMsMax : 0;
  }

  /** Takes note of the answer to it. */
  answered(nowMs: number): void {
    this.#answeredMs = nowMs;
  }
}
