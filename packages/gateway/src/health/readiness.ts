import { requireObject } from "@plantstore/http";

/** A server part that may fail. */
export interface ServerPart {
  /** Why the part cannot serve, for an operator, or `undefined` while it can. Must be cheap to read. */
  readonly problem?: string | undefined;
  /** Whether the server is ready even if this part fails. Probes then report the part as degraded. Default `false`. */
  readonly isOptional?: boolean;
}

/**
 * Whether calls should be sent to this server, for probes, gRPC health and the drain.
 *
 * Computed on demand and never stored, so it cannot be out of date.
 */
export class Readiness {
  readonly #parts: () => Readonly<Record<string, ServerPart>>;
  readonly #drain = new AbortController();

  /**
   * @param parts - by the names that probes report, or a function that returns them, if they change. Names must not be
   * secret, because probes need no credential
   * @throws TypeError with the code ERR_OPTIONS if `parts` is neither
   */
  constructor(parts: Readonly<Record<string, ServerPart>> | (() => Readonly<Record<string, ServerPart>>)) {
    if (typeof parts !== "function") requireObject(parts, "Readiness", "parts");
    this.#parts = typeof parts === "function" ? parts : () => parts;
  }

  /** Makes the server permanently not ready, because it is about to stop. */
  startDraining(): void {
    this.#drain.abort();
  }

  /** Aborts when the server starts to drain. */
  get draining(): AbortSignal {
    return this.#drain.signal;
  }

  /** Returns the reasons why the server is not ready: `"draining"`, or part names. Empty when it is ready. */
  obstacles(): string[] {
    const names = [...this.problems().keys()];
    return this.draining.aborted ? ["draining", ...names] : names;
  }

  /** Returns why required server parts cannot serve, for an operator, by their names. */
  problems(): ReadonlyMap<string, string> {
    return this.#problemsOf(false);
  }

  /** Returns the names of optional parts that cannot serve. */
  degraded(): string[] {
    return [...this.#problemsOf(true).keys()];
  }

  #problemsOf(optional: boolean): ReadonlyMap<string, string> {
    const problems = new Map<string, string>();
    for (const [name, { problem, isOptional = false }] of Object.entries(this.#parts())) {
      if (problem !== undefined && isOptional === optional) problems.set(name, problem);
    }
    return problems;
  }
}
