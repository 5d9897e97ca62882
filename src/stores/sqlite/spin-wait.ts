/** How long a thread takes to wake up, in milliseconds. */
const wakeUpMs = 0.05;

/**
 * Decides whether the storage thread spins before it sleeps. A caller that deletes one plant after another sends the
 * next request immediately; if the thread still spins, the caller does not wait for it to wake up. For slower callers,
 * spinning would cost as much as the deletion without any gain.
 */
export class SpinWait {
  readonly #spinMsMax: number;
  #spinMs = 0;
  #repliedMs = Number.NEGATIVE_INFINITY;

  /** @param spinMsMax - the longest time to spin, in milliseconds; with zero, it never spins */
  constructor(spinMsMax: number) {
    this.#spinMsMax = spinMsMax;
  }

  /** How long to spin for the next request, in milliseconds. */
  get spinMs(): number {
    return this.#spinMs;
  }

  /** Records a request, and whether it is a single deletion. */
  requested(isSingle: boolean, nowMs: number): void {
    const limitMs = this.#spinMs > 0 ? this.#spinMs : this.#spinMsMax + wakeUpMs;
    this.#spinMs = isSingle && nowMs - this.#repliedMs < limitMs ? this.#spinMsMax : 0;
  }

  /** Records the reply to the last request. */
  replied(nowMs: number): void {
    this.#repliedMs = nowMs;
  }
}
