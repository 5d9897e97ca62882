import type { Output } from "../check/index.ts";

/** Milliseconds after which a refusal that lasts is written again. Ten minutes: the log of every hour has it. */
const repeatMs = 600_000;

/**
 * Writes why a reload was refused: whenever the reason changes, and again while it lasts.
 *
 * It writes at most one line per reload and one in ten minutes. A `FailureLog` would drop lines, and the reason would be
 * missing until the next repetition.
 */
export class ReloadLog {
  readonly #output: Output;
  #refusal: string | undefined;
  #repeat: NodeJS.Timeout | undefined;

  constructor(output: Output) {
    this.#output = output;
  }

  /** Notes how a reload went. @param refusal - what to write; `undefined` if the reload succeeded */
  note(refusal: string | undefined): void {
    if (refusal === this.#refusal) return;
    this.#refusal = refusal;
    clearInterval(this.#repeat);
    if (refusal === undefined) return;
    this.#output.complain(refusal);
    this.#repeat = setInterval(() => this.#output.complain(refusal), repeatMs).unref();
  }

  /** Ends the repetition. */
  close(): void {
    clearInterval(this.#repeat);
  }
}
