/** Why a store cannot delete. */
export interface StoreProblem {
  /** A clause for an operator, without the name of the store. */
  readonly text: string;
  /**
   * Whether the store can recover while the process lives. A full disk can be emptied; after a failed fsync or a
   * damaged page nothing that this process holds in memory can be trusted any more.
   */
  readonly isTemporary: boolean;
  /**
   * Whether a restart would do harm before somebody has looked: it would serve another file, or bring plants back. Only
   * for a problem that does not pass.
   */
  readonly needsOperator?: boolean;
  /**
   * Whether it may be over in a few seconds, like a restart or a failover. Callers wait for its end, so it counts only
   * once it has lasted for {@link StoreHealthOptions.briefMsMax}, from when the look that has found it began.
   */
  readonly mayBeBrief?: boolean;
}

/** Options of {@link StoreHealth}. */
export interface StoreHealthOptions {
  /**
   * Finds out what is wrong at the moment; must not reject. `hasWorked` says whether the store has committed a deletion
   * lately; if not, only a write can show that it still can. By `untilMs`, on the clock of `performance.now()`, it is to
   * have found out.
   */
  readonly findProblem: (hasWorked: boolean, untilMs: number) => Promise<StoreProblem | undefined>;
  /** How often to check a store that seems well, in milliseconds. */
  readonly watchIntervalMs: number;
  /** How long a problem that may be brief is waited for, in milliseconds. Default 0. */
  readonly briefMsMax?: number;
}

/** How often a store that is down is checked, in milliseconds: a recovered one works again after a second at most. */
export const tryIntervalMs = 1_000;

/** How long the last look has at a problem that may be brief, in milliseconds: enough to write, or to fail to. */
const lastLookMs = 1_000;

/** Tracks whether a store can delete, and notices when that changes. */
export class StoreHealth {
  /** What is wrong; `undefined` while the store can delete. */
  problem: StoreProblem | undefined;
  readonly #options: StoreHealthOptions;
  readonly #watch: NodeJS.Timeout;
  #nextTry: NodeJS.Timeout | undefined;
  #finding: Promise<StoreProblem | undefined> | undefined;
  /** When the store has last committed a deletion, on the clock of `performance.now()`. */
  #workedAtMs = Number.NEGATIVE_INFINITY;
  /** The time until which a problem that may be brief is waited for; `undefined` while there is none. */
  #patientUntilMs: number | undefined;

  constructor(options: StoreHealthOptions) {
    this.#options = options;
    this.#watch = setInterval(() => void this.suspect(), options.watchIntervalMs).unref();
  }

  /** Records that the store has committed a deletion. */
  worked(): void {
    this.#workedAtMs = performance.now();
    this.#patientUntilMs = undefined;
  }

  /** Returns whether the store has committed a deletion since a time on the clock of `performance.now()`. */
  hasWorkedSince(timeMs: number): boolean {
    return this.#workedAtMs >= timeMs;
  }

  /** Checks the store now, unless a problem is known, and resolves to whether none was found. */
  async suspect(): Promise<boolean> {
    return this.problem === undefined && this.#patientUntilMs === undefined && (await this.#try());
  }

  /** Records that the store cannot delete. It is checked again until it can, unless the fault is permanent. */
  report(problem: StoreProblem): void {
    // The first permanent fault is the reason; later ones are its consequences.
    if (this.problem?.isTemporary === false) return;
    this.problem = problem;
    this.#patientUntilMs = undefined;
    // Earlier commits prove nothing now.
    this.#workedAtMs = Number.NEGATIVE_INFINITY;
    if (problem.isTemporary) this.#tryLater();
    else {
      clearTimeout(this.#nextTry);
      clearInterval(this.#watch);
    }
  }

  async #try(): Promise<boolean> {
    const untilMs = this.#patientUntilMs ?? performance.now() + (this.#options.briefMsMax ?? 0);
    const found = await this.#find(untilMs);
    if (found === undefined) this.#recover();
    else if (this.problem === undefined && this.#mayStillPass(found, untilMs)) this.#tryLater();
    else this.report(found);
    return found === undefined;
  }

  #recover(): void {
    this.#patientUntilMs = undefined;
    if (this.problem?.isTemporary === true) this.problem = undefined;
  }

  #mayStillPass(found: StoreProblem, untilMs: number): boolean {
    return found.mayBeBrief === true && performance.now() < (this.#patientUntilMs ??= untilMs) - lastLookMs;
  }

  #tryLater(): void {
    clearTimeout(this.#nextTry);
    // A timer may be a millisecond early, and the last look is to be the last one.
    const leftMs = (this.#patientUntilMs ?? Number.POSITIVE_INFINITY) - lastLookMs - performance.now() + 2;
    this.#nextTry = setTimeout(() => void this.#try(), Math.min(tryIntervalMs, leftMs)).unref();
  }

  // One check at a time: a store that does not answer is not asked again meanwhile.
  #find(untilMs: number): Promise<StoreProblem | undefined> {
    const { findProblem, watchIntervalMs } = this.#options;
    const hasWorked = this.hasWorkedSince(performance.now() - watchIntervalMs);
    this.#finding ??= findProblem(hasWorked, untilMs).finally(() => (this.#finding = undefined));
    return this.#finding;
  }
}
