/** Why a store cannot delete. */
export interface StoreProblem {
  /** The problem as a clause for an operator, without the store's name. */
  readonly text: string;
  /** Whether the store can recover while the process runs. False after a failed fsync or for a damaged page. */
  readonly isTemporary: boolean;
  /** Whether an operator must act before a restart, which could restore deleted plants. Set for permanent problems. */
  readonly needsOperator?: boolean;
  /** Whether the problem may end within seconds, like a failover, and is reported only after the grace period. */
  readonly mayBeBrief?: boolean;
}

/** Options for {@link StoreHealth}. */
interface StoreHealthOptions {
  /**
   * Returns the current problem by `deadlineMs`, on the `performance.now()` clock. Must not reject. `hasCommitted` is
   * whether a deletion was committed recently. Without a recent commit, only a write shows that commits work.
   */
  readonly findProblem: (hasCommitted: boolean, deadlineMs: number) => Promise<StoreProblem | undefined>;
  /** Interval between checks of a healthy store, in milliseconds. */
  readonly watchIntervalMs: number;
  /** The time from the start of a check until a problem that may be brief is reported, in milliseconds. Default 0. */
  readonly graceMs?: number;
}

/** Interval between checks of a store with a problem, in milliseconds. */
export const retryIntervalMs = 1_000;

/** Time for the final check of a grace period, in milliseconds. A write takes less time. */
const finalCheckMs = 1_000;

/** Tracks whether a store can delete, with periodic checks. */
export class StoreHealth {
  problem: StoreProblem | undefined;
  readonly #options: StoreHealthOptions;
  readonly #watch: NodeJS.Timeout;
  #nextCheck: NodeJS.Timeout | undefined;
  #running: Promise<StoreProblem | undefined> | undefined;
  #committedAtMs = Number.NEGATIVE_INFINITY;
  /** When the grace period ends. Undefined outside a grace period. */
  #graceEndMs: number | undefined;

  constructor(options: StoreHealthOptions) {
    this.#options = options;
    this.#watch = setInterval(() => void this.check(), options.watchIntervalMs).unref();
  }

  recordCommit(): void {
    this.#committedAtMs = performance.now();
    this.#graceEndMs = undefined;
  }

  /** Returns whether the store has committed a deletion since a time on the `performance.now()` clock. */
  hasCommittedSince(timeMs: number): boolean {
    return this.#committedAtMs >= timeMs;
  }

  /** Checks the store, unless a problem is known. Resolves to whether the store is healthy. */
  async check(): Promise<boolean> {
    return this.problem === undefined && this.#graceEndMs === undefined && (await this.#checkAndReport());
  }

  /** Records a problem without a grace period. After a temporary problem, checks the store until it recovers. */
  report(problem: StoreProblem): void {
    // Ignores further problems after a permanent problem, because the permanent problem causes them.
    if (this.problem?.isTemporary === false) return;
    this.problem = problem;
    this.#graceEndMs = undefined;
    // Earlier commits no longer show that the store works.
    this.#committedAtMs = Number.NEGATIVE_INFINITY;
    if (problem.isTemporary) this.#scheduleCheck();
    else {
      clearTimeout(this.#nextCheck);
      clearInterval(this.#watch);
    }
  }

  async #checkAndReport(): Promise<boolean> {
    const deadlineMs = this.#graceEndMs ?? performance.now() + (this.#options.graceMs ?? 0);
    const found = await this.#runCheck(deadlineMs);
    // A concurrent call may have started a grace period during the check.
    const graceEndMs = this.#graceEndMs ?? deadlineMs;
    const isWithinGrace = found?.mayBeBrief === true && performance.now() < graceEndMs - finalCheckMs;
    if (found === undefined) this.#recover();
    else if (this.problem === undefined && isWithinGrace) {
      this.#graceEndMs = graceEndMs;
      this.#scheduleCheck();
    } else this.report(found);
    return found === undefined;
  }

  #recover(): void {
    this.#graceEndMs = undefined;
    if (this.problem?.isTemporary === true) this.problem = undefined;
  }

  #scheduleCheck(): void {
    clearTimeout(this.#nextCheck);
    // Adds 2 ms, because timers may fire 1 ms early, and a check that is too early would not be the final check.
    const remainingMs = (this.#graceEndMs ?? Number.POSITIVE_INFINITY) - finalCheckMs - performance.now() + 2;
    this.#nextCheck = setTimeout(() => void this.#checkAndReport(), Math.min(retryIntervalMs, remainingMs)).unref();
  }

  // Runs only one check at a time. Concurrent checks would accumulate if a store does not respond.
  #runCheck(deadlineMs: number): Promise<StoreProblem | undefined> {
    const { findProblem, watchIntervalMs } = this.#options;
    const hasCommitted = this.hasCommittedSince(performance.now() - watchIntervalMs);
    this.#running ??= findProblem(hasCommitted, deadlineMs).finally(() => (this.#running = undefined));
    return this.#running;
  }
}
