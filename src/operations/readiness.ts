/** A part of the server that may fail. */
export interface ReadinessCheck {
  /** The name that probes report, for example "store"; never a secret, because probes carry no credential. */
  readonly name: string;
  /** Returns why the part cannot serve, for an operator; `undefined` while it can. Must be cheap. */
  readonly problem: () => string | undefined;
}

/**
 * Whether calls should be sent to this server, as probes, gRPC health and the drain see it.
 *
 * It is computed on demand and never stored, so it cannot be out of date.
 */
export class Readiness {
  readonly #checks: readonly ReadinessCheck[];
  readonly #drain = new AbortController();

  constructor(checks: readonly ReadinessCheck[]) {
    this.#checks = checks;
  }

  /** Makes the server not ready for good: it is about to stop. */
  startDraining(): void {
    this.#drain.abort();
  }

  /** Aborts when the server starts to drain. */
  get draining(): AbortSignal {
    return this.#drain.signal;
  }

  /** Returns the reasons why the server is not ready: `"draining"`, or names of checks. Empty when it is ready. */
  obstacles(): string[] {
    const names = this.#checks.filter((check) => check.problem() !== undefined).map((check) => check.name);
    return this.draining.aborted ? ["draining", ...names] : names;
  }

  /** Returns why parts of the server cannot serve, by their names, for an operator. */
  problems(): ReadonlyMap<string, string> {
    const problems = new Map<string, string>();
    for (const { name, problem } of this.#checks) {
      const text = problem();
      if (text !== undefined) problems.set(name, text);
    }
    return problems;
  }
}
