import type { AuthErrorCode } from "./error-code.ts";

/** The log for operators, such as a pino logger. No line contains a credential. */
export interface OperatorLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** The outcome of a file's last reload, for metrics and alerts. */
export interface FileReload {
  /** The file's path. If several files are reloaded together, their paths are separated by ", ". */
  readonly path: string;
  /** Whether the file's content is in use. */
  readonly succeeded: boolean;
  /** When the last reload succeeded, in Unix milliseconds. */
  readonly lastSuccessMs: number;
}

/** The file whose reloads a {@link ReloadRecord} records. */
interface RecordedFile {
  readonly path: string;
  /** The file's description in the log, such as "file of token hashes". */
  readonly what: string;
  readonly log: OperatorLog;
  /** Milliseconds after which a rejected file is tried again. */
  readonly retryRejectedMs: number;
  /** Milliseconds after which the same rejection is logged again. */
  readonly repeatRejectionMs: number;
}

/** Records the outcome of a watched file's last reload, and logs changes of the outcome. */
export class ReloadRecord {
  last: FileReload;
  readonly #file: RecordedFile;
  #rejectedAtMs = Infinity;
  #problem = "";
  #loggedAtMs = -Infinity;

  constructor(file: RecordedFile) {
    this.#file = file;
    this.last = { path: file.path, succeeded: true, lastSuccessMs: Date.now() };
  }

  /** Whether a rejected, unchanged file should be tried again. A certificate may have become valid since. */
  get isRetryDue(): boolean {
    return performance.now() - this.#rejectedAtMs >= this.#file.retryRejectedMs;
  }

  recordRejection(problems: readonly string[]): void {
    const { log, path, what, repeatRejectionMs } = this.#file;
    const nowMs = performance.now();
    const problem = problems.join("; ");
    this.last = { ...this.last, succeeded: false };
    this.#rejectedAtMs = nowMs;
    if (problem === this.#problem && nowMs - this.#loggedAtMs < repeatRejectionMs) return;
    this.#problem = problem;
    this.#loggedAtMs = nowMs;
    const errorCode: AuthErrorCode = "ERR_FILE_REFUSED";
    log.warn(
      { errorCode, path, problems: problems.slice(0, maxProblemsLogged) },
      `${what} not reloaded, keeping the previous one`,
    );
  }

  /** Records that new content is in use. @param fields - fields for the log line */
  recordReload(fields: object): void {
    const { log, path, what } = this.#file;
    this.#recordSuccess(Date.now());
    log.info({ path, ...fields }, `${what} reloaded`);
  }

  /** Records that the file's content is already in use. */
  recordUnchanged(): void {
    const { log, path, what } = this.#file;
    if (!this.last.succeeded) log.info({ path }, `${what} reverted to the content in use`);
    this.#recordSuccess(this.last.lastSuccessMs);
  }

  #recordSuccess(lastSuccessMs: number): void {
    this.#rejectedAtMs = Infinity;
    this.#problem = "";
    this.last = { ...this.last, succeeded: true, lastSuccessMs };
  }
}

/** Maximum number of problems per log line. */
const maxProblemsLogged = 20;
