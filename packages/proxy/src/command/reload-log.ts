import type { Output } from "./terminal.ts";

/** Milliseconds after which a persistent problem is logged again. Ten minutes, so that each hour's log includes it. */
const repeatMs = 600_000;

/**
 * Logs why a reload failed: when the reason changes, and every ten minutes while it persists.
 *
 * `FailureLog` is not used because it drops lines, so that a new reason could be missing from the log for ten minutes.
 */
export class ReloadLog {
  readonly #output: Output;
  #problem: string | undefined;
  #repeat: NodeJS.Timeout | undefined;

  constructor(output: Output) {
    this.#output = output;
  }

  /** Whether the last reload failed. */
  get hasProblem(): boolean {
    return this.#problem !== undefined;
  }

  /** Records a reload's result. @param problem - why it failed, or `undefined` if it succeeded */
  record(problem: string | undefined): void {
    if (problem === this.#problem) return;
    this.#problem = problem;
    clearInterval(this.#repeat);
    if (problem === undefined) return;
    this.#output.printError(problem);
    this.#repeat = setInterval(() => this.#output.printError(problem), repeatMs).unref();
  }

  /** Stops logging. */
  close(): void {
    clearInterval(this.#repeat);
  }
}
