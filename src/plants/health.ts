/** Why a store cannot delete. */
export interface StoreProblem {
  /** For an operator: a clause without the store's name. */
  readonly text: string;
  /**
   * Whether the fault can pass while the process lives. A full disk can be emptied; after a failed
   * fsync or on a damaged page nothing this process has in memory can be trusted any more.
   */
  readonly passing: boolean;
}

// A fault that has passed costs a second more at most, and a store that is away is asked no oftener.
const tryIntervalMs = 1_000;

/** Whether a store can delete, and the watch for the moment when it can again. */
export class Health {
  readonly #tryAgain: () => Promise<StoreProblem | undefined>;
  #problem: StoreProblem | undefined;
  #nextTry: NodeJS.Timeout | undefined;

  /** `tryAgain` finds out what is wrong now, and does not reject. */
  constructor(tryAgain: () => Promise<StoreProblem | undefined>) {
    this.#tryAgain = tryAgain;
  }

  /** What is wrong, or `undefined` while the store can delete. */
  get problem(): StoreProblem | undefined {
    return this.#problem;
  }

  /** Says that the store cannot delete. It is tried again until it can, unless the fault cannot pass. */
  report(problem: StoreProblem): void {
    // The first fault that cannot pass is the reason; what follows from it is not.
    if (this.#problem?.passing === false) return;
    this.#problem = problem;
    clearTimeout(this.#nextTry);
    if (problem.passing) this.#nextTry = setTimeout(() => void this.#try(), tryIntervalMs).unref();
  }

  async #try(): Promise<void> {
    const found = await this.#tryAgain();
    if (found !== undefined) this.report(found);
    else if (this.#problem?.passing === true) this.#problem = undefined;
  }
}
