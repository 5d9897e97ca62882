/** Why a store cannot delete. */
export interface StoreProblem {
  /** The problem as a clause for an operator, without the store's name. */
  readonly text: string;
  /** Whether the store can recover while the process runs. False after a failed fsync or for a damaged page. */
  readonly isTemporary: boolean;
  /** Whether an operator must act before a restart, which could restore deleted plants. Set for permanent problems. */
  readonly needsOperator?: boolean;
}

interface StoreHealthOptions {
  /**
   * Returns the current problem. Must not reject. `hasCommitted` is whether a deletion was committed recently. Without a
   * recent commit, only a write shows that commits work.
   */
  readonly findProblem: (hasCommitted: boolean) => Promise<StoreProblem | undefined>;
  /** Interval between checks of a healthy store, in milliseconds. */
  readonly watchIntervalMs: number;
}

/** Interval between checks of a store with a problem, in milliseconds. */
export const retryIntervalMs = 1_000;

/** Tracks whether a store can delete, with periodic checks. */
export class StoreHealth {
  problem: StoreProblem | undefined;
  readonly #options: StoreHealthOptions;
  readonly #watch: NodeJS.Timeout;
  #nextCheck: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #committedAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: StoreHealthOptions) {
    this.#options = options;
    this.#watch = setInterval(() => void this.check(), options.watchIntervalMs).unref();
  }

  recordCommit(): void {
    this.#committedAtMs = performance.now();
  }

  /** Returns whether the store has committed a deletion since a time on the `performance.now()` clock. */
  hasCommittedSince(timeMs: number): boolean {
    return this.#committedAtMs >= timeMs;
  }

  /** Checks the store, unless a problem is known, which is checked for by itself. */
  async check(): Promise<void> {
    if (this.problem === undefined) await this.#check();
  }

  /** Records a problem. After a temporary problem, checks the store until it recovers. */
  report(problem: StoreProblem): void {
    // Ignores further problems after a permanent problem, because the permanent problem causes them.
    if (this.problem?.isTemporary === false) return;
    this.problem = problem;
    // Earlier commits no longer show that the store works.
    this.#committedAtMs = Number.NEGATIVE_INFINITY;
    clearTimeout(this.#nextCheck);
    if (problem.isTemporary) this.#nextCheck = setTimeout(() => void this.#check(), retryIntervalMs).unref();
    else clearInterval(this.#watch);
  }

  // Runs only one check at a time. Concurrent checks would accumulate if a store does not respond.
  async #check(): Promise<void> {
    const { findProblem, watchIntervalMs } = this.#options;
    const hasCommitted = this.hasCommittedSince(performance.now() - watchIntervalMs);
    this.#running ??= findProblem(hasCommitted).then((found) => {
      this.#running = undefined;
      if (found !== undefined) this.report(found);
      else if (this.problem?.isTemporary === true) this.problem = undefined;
    });
    await this.#running;
  }
}
