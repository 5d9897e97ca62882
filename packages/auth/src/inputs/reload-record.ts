import type { AuthErrorCode } from "./error-code.ts";
import type { OperatorLog } from "./operator-log.ts";

/** How the last reload of a file went, for metrics and alerts. */
export interface FileReload {
  /** The path of the file; of several that belong together, separated by ", ". */
  readonly path: string;
  /** Whether the file has what is in use. */
  readonly succeeded: boolean;
  /** When a text of it was last taken, in ms since 1970. */
  readonly lastSuccessMs: number;
}

/** What a {@link ReloadRecord} is of. */
export interface RecordedFile {
  readonly path: string;
  /** What the file is, for the log: "file of token hashes". */
  readonly what: string;
  readonly log: OperatorLog;
  /** Milliseconds after which a refused file is tried again, and after which the same refusal is logged again. */
  readonly retryRefusedMs: number;
  readonly repeatRefusalMs: number;
}

/** The reloads of a watched file: keeps the outcome of the last one, and logs each change of it. */
export class ReloadRecord {
  last: FileReload;
  readonly #file: RecordedFile;
  #refusedAtMs = Infinity;
  #problem = "";
  #loggedAtMs = -Infinity;

  constructor(file: RecordedFile) {
    this.#file = file;
    this.last = { path: file.path, succeeded: true, lastSuccessMs: Date.now() };
  }

  /** Whether a refused file may be tried again, although it has not changed: time alone can make it right. */
  get isRetryDue(): boolean {
    return performance.now() - this.#refusedAtMs >= this.#file.retryRefusedMs;
  }

  refuse(problems: readonly string[]): void {
    const { log, path, what, repeatRefusalMs } = this.#file;
    const nowMs = performance.now();
    const problem = problems.join("; ");
    this.last = { ...this.last, succeeded: false };
    this.#refusedAtMs = nowMs;
    if (problem === this.#problem && nowMs - this.#loggedAtMs < repeatRefusalMs) return;
    this.#problem = problem;
    this.#loggedAtMs = nowMs;
    const errorCode: AuthErrorCode = "ERR_FILE_REFUSED";
    log.warn(
      { errorCode, path, problems: problems.slice(0, problemsLoggedMax) },
      `${what} not reloaded, keeping the previous one`,
    );
  }

  /** Notes that new texts were taken. @param fields - what the log says of them */
  take(fields: object): void {
    const { log, path, what } = this.#file;
    this.#settle(Date.now());
    log.info({ path, ...fields }, `${what} reloaded`);
  }

  /** Notes that the file has the texts that are in use. */
  keep(): void {
    const { log, path, what } = this.#file;
    if (!this.last.succeeded) log.info({ path }, `${what} reverted to the content in use`);
    this.#settle(this.last.lastSuccessMs);
  }

  #settle(lastSuccessMs: number): void {
    this.#refusedAtMs = Infinity;
    this.#problem = "";
    this.last = { ...this.last, succeeded: true, lastSuccessMs };
  }
}

/** The most problems of one file that a log line names. */
const problemsLoggedMax = 20;
