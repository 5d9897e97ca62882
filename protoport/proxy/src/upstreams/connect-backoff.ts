/** Milliseconds until the first retry (INITIAL_BACKOFF in gRPC). */
const initialMs = 1_000;
/** Factor by which the wait grows after each further failure (MULTIPLIER in gRPC). */
const multiplier = 1.6;
/** Maximum wait in milliseconds (MAX_BACKOFF in gRPC). */
const maxMs = 120_000;
/** Fraction by which waits vary randomly, so that clients do not retry at the same time (JITTER in gRPC). */
const connectJitter = 0.2;

/** Determines when a failed attempt may be retried (gRPC, "Connection Backoff Protocol"). */
export class ConnectBackoff {
  #nextMs = initialMs;
  #endMs = 0;

  /** Whether it is too early to retry. */
  get isWaiting(): boolean {
    return performance.now() < this.#endMs;
  }

  /**
   * Records that an attempt failed. The wait is measured from the attempt's start.
   *
   * @returns the time for the next attempt, in `performance.now()` milliseconds
   */
  failed(begunAtMs: number): number {
    this.#endMs = begunAtMs + this.#nextMs * (1 + connectJitter * (2 * Math.random() - 1));
    this.#nextMs = Math.min(this.#nextMs * multiplier, maxMs);
    return this.#endMs;
  }

  succeeded(): void {
    this.#nextMs = initialMs;
    this.#endMs = 0;
  }
}
