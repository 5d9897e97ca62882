import type { CommandOutput } from "@plantstore/command-line";

/** Milliseconds after which a persistent problem is logged again, so that each hour's log includes the problem. */
const repeatMs = 600_000;

/**
 * Logs why a reload failed. The reason is logged when it changes, and every ten minutes while it persists.
 *
 * `FailureLog` is not used because it drops lines. A new reason could be missing from the log for ten minutes.
 */
export class ReloadLog {
  readonly #output: CommandOutput;
  #problem: string | undefined;
  #repeat: NodeJS.Timeout | undefined;

  constructor(output: CommandOutput) {
    this.#output = output;
  }

  /** Whether the last reload failed. */
  get hasProblem(): boolean {
    return this.#problem !== undefined;
  }

  /** Records a reload's result. @param problem - why the reload failed, or `undefined` for success */
  record(problem: string | undefined): void {
    if (problem === this.#problem) return;
    this.#problem = problem;
    clearInterval(this.#repeat);
    if (problem === undefined) return;
    this.#output.err(problem);
    this.#repeat = setInterval(() => this.#output.err(problem), repeatMs).unref();
  }

  close(): void {
    clearInterval(this.#repeat);
  }
}
