/** A part of the service that may be unwell. */
export interface ReadinessCheck {
  /** What a probe is told, for example "store"; never a secret, since probes carry no credential. */
  readonly name: string;
  /** Why the part cannot serve, in words for an operator; `undefined` while it can. Must be cheap. */
  readonly problem: () => string | undefined;
}

/**
 * The one answer to "should calls be sent here?", shared by the probes, gRPC health and the drain.
 *
 * It is computed when asked, never stored, so it cannot disagree with what it is about.
 */
export class Readiness {
  readonly #checks: readonly ReadinessCheck[];
  readonly #drain = new AbortController();

  constructor(checks: readonly ReadinessCheck[]) {
    this.#checks = checks;
  }

  /** From here on the service is not ready, for good: it is about to stop. */
  startDraining(): void {
    this.#drain.abort();
  }

  /** Aborted when the service starts to drain, for those who wait. */
  get draining(): AbortSignal {
    return this.#drain.signal;
  }

  /** Names what is in the way, `"draining"` or checks by name; empty when the service is ready. */
  obstacles(): string[] {
    const names = this.#checks.filter((check) => check.problem() !== undefined).map((check) => check.name);
    return this.draining.aborted ? ["draining", ...names] : names;
  }
}
