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

/** Whether a store can delete, and the watch for the moment when that changes. */
export class Health {
  readonly #findProblem: () => Promise<StoreProblem | undefined>;
  readonly #watch: NodeJS.Timeout | undefined;
  #problem: StoreProblem | undefined;
  #nextTry: NodeJS.Timeout | undefined;
  #finding: Promise<StoreProblem | undefined> | undefined;

  /**
   * @param findProblem - finds out what is wrong now, and does not reject
   * @param watchIntervalMs - how often to find out while nothing is known to be wrong; a store whose
   * faults show in nothing but its own writes need not be watched
   */
  constructor(findProblem: () => Promise<StoreProblem | undefined>, watchIntervalMs?: number) {
    this.#findProblem = findProblem;
    if (watchIntervalMs !== undefined) this.#watch = setInterval(() => void this.#look(), watchIntervalMs).unref();
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
    else clearInterval(this.#watch);
  }

  async #try(): Promise<void> {
    const found = await this.#find();
    if (found !== undefined) this.report(found);
    else if (this.#problem?.passing === true) this.#problem = undefined;
  }

  async #look(): Promise<void> {
    if (this.#problem !== undefined) return;
    const found = await this.#find();
    if (found !== undefined) this.report(found);
  }

  // One at a time: a store that does not answer is not asked again meanwhile.
  #find(): Promise<StoreProblem | undefined> {
    this.#finding ??= this.#findProblem().finally(() => (this.#finding = undefined));
    return this.#finding;
  }
}
