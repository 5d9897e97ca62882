/** Milliseconds until the first retry: gRPC's INITIAL_BACKOFF. */
const initialMs = 1_000;
/** Factor by which the wait grows after each further failure: gRPC's MULTIPLIER. */
const multiplier = 1.6;
/** Maximum wait in milliseconds: gRPC's MAX_BACKOFF. */
const maxMs = 120_000;
/** Waits vary randomly by this fraction, so that clients do not retry at the same time: gRPC's JITTER. */
const jitter = 0.2;

/** When a failed attempt may be retried, by gRPC's "Connection Backoff Protocol". */
export class ConnectBackoff {
  #nextMs = initialMs;
  #endMs = 0;

  /** Whether it is too early to retry. */
  get isWaiting(): boolean {
    return performance.now() < this.#endMs;
  }

  /**
   * Records that an attempt failed. Waits are measured from an attempt's start.
   *
   * @returns when to retry, in `performance.now()` milliseconds
   */
  failed(begunAtMs: number): number {
    this.#endMs = begunAtMs + this.#nextMs * (1 + jitter * (2 * Math.random() - 1));
    this.#nextMs = Math.min(this.#nextMs * multiplier, maxMs);
    return this.#endMs;
  }

  /** Records that an attempt succeeded. */
  succeeded(): void {
    this.#nextMs = initialMs;
    this.#endMs = 0;
  }
}
