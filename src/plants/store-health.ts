/** Why a store cannot delete. */
export interface StoreProblem {
  /** A clause for an operator, without the name of the store. */
  readonly text: string;
  /**
   * Whether the store can recover while the process lives. A full disk can be emptied; after a failed fsync or a
   * damaged page nothing that this process holds in memory can be trusted any more.
   */
  readonly passing: boolean;
}

/** How often a store that is down is checked, in milliseconds: a recovered one works again after a second at most. */
export const tryIntervalMs = 1_000;

/** Tracks whether a store can delete, and notices when that changes. */
export class StoreHealth {
  /** What is wrong; `undefined` while the store can delete. */
  problem: StoreProblem | undefined;
  readonly #findProblem: () => Promise<StoreProblem | undefined>;
  readonly #watch: NodeJS.Timeout | undefined;
  #nextTry: NodeJS.Timeout | undefined;
  #finding: Promise<StoreProblem | undefined> | undefined;

  /**
   * @param findProblem - finds out what is wrong at the moment; must not reject
   * @param watchIntervalMs - how often to check a store that seems well; left out for a store whose faults only show in
   * its own writes
   */
  constructor(findProblem: () => Promise<StoreProblem | undefined>, watchIntervalMs?: number) {
    this.#findProblem = findProblem;
    if (watchIntervalMs !== undefined) this.#watch = setInterval(() => void this.#look(), watchIntervalMs).unref();
  }

  /** Records that the store cannot delete. It is checked again until it can, unless the fault is permanent. */
  report(problem: StoreProblem): void {
    // The first permanent fault is the reason; later ones are its consequences.
    if (this.problem?.passing === false) return;
    this.problem = problem;
    clearTimeout(this.#nextTry);
    if (problem.passing) this.#nextTry = setTimeout(() => void this.#try(), tryIntervalMs).unref();
    else clearInterval(this.#watch);
  }

  async #try(): Promise<void> {
    const found = await this.#find();
    if (found !== undefined) this.report(found);
    else if (this.problem?.passing === true) this.problem = undefined;
  }

  async #look(): Promise<void> {
    if (this.problem !== undefined) return;
    const found = await this.#find();
    if (found !== undefined) this.report(found);
  }

  // One check at a time: a store that does not answer is not asked again meanwhile.
  #find(): Promise<StoreProblem | undefined> {
    this.#finding ??= this.#findProblem().finally(() => (this.#finding = undefined));
    return this.#finding;
  }
}
