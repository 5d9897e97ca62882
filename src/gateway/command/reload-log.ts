import type { FailureLog } from "./failure-log.ts";

/** Milliseconds after which a refusal that lasts is written again. Ten minutes: the log of every hour has it. */
const repeatMs = 600_000;

/** Writes why a reload was refused: whenever the reason changes, and again while it lasts. */
export class ReloadLog {
  readonly #log: FailureLog;
  #refusal: string | undefined;
  #repeat: NodeJS.Timeout | undefined;

  constructor(log: FailureLog) {
    this.#log = log;
  }

  /** Notes how a reload went. @param refusal - what to write; `undefined` if the reload succeeded */
  note(refusal: string | undefined): void {
    if (refusal === this.#refusal) return;
    this.#refusal = refusal;
    clearInterval(this.#repeat);
    if (refusal === undefined) return;
    this.#log.write(refusal);
    this.#repeat = setInterval(() => this.#log.write(refusal), repeatMs).unref();
  }
  /** Ends the repetition. */
  close(): void {
    clearInterval(this.#repeat);
  }
}
