/** Milliseconds until a server that could not be reached is tried again, at first: gRPC's INITIAL_BACKOFF. */
const initialMs = 1_000;
/** By how much each further failure lengthens the wait: gRPC's MULTIPLIER. */
const multiplier = 1.6;
/** Milliseconds that a wait takes at most: gRPC's MAX_BACKOFF. */
const longestMs = 120_000;
/** By which share a wait is longer or shorter by chance, so that clients do not come back all at once: gRPC's JITTER. */
const jitter = 0.2;

/** When what could not be reached may be tried again, by gRPC's "Connection Backoff Protocol". */
export class ConnectBackoff {
  #nextMs = initialMs;
  #untilMs = 0;

  /** Whether it is too early to try. */
  get waits(): boolean {
    return performance.now() < this.#untilMs;
  }

  /**
   * Notes that an attempt that began at this time has failed; waits are counted from the beginning of an attempt.
   *
   * @returns until when to wait
   */
  failed(begunAtMs: number): number {
    this.#untilMs = begunAtMs + this.#nextMs * (1 + jitter * (2 * Math.random() - 1));
    this.#nextMs = Math.min(this.#nextMs * multiplier, longestMs);
    return this.#untilMs;
  }

  /** Notes that the server has answered. */
  succeeded(): void {
    this.#nextMs = initialMs;
    this.#untilMs = 0;
  }
}
