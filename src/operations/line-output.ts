import type { Writable } from "node:stream";

/**
 * The most bytes of lines that wait for whoever reads the log; later ones are dropped, and counted.
 *
 * 8 MiB: some thirty thousand lines, which is seconds of a server under load whose log is read slowly.
 */
const waitingBytesMax = 8 * 1024 * 1024;

/**
 * Where the lines of a log go, so that writing them never holds up a call: those of a turn of the event loop in one
 * write, and none at all once too many wait. A log that nobody reads takes a bounded memory, and says how many lines
 * it has lost as soon as somebody does.
 */
export class LineOutput {
  readonly #stream: Writable;
  readonly #lostLine: (lines: number) => string;
  #lines = "";
  #lost = 0;
  #scheduled = false;

  /**
   * @param stream - such as `process.stderr`
   * @param lostLine - makes the line that says how many lines were lost
   */
  constructor(stream: Writable, lostLine: (lines: number) => string) {
    this.#stream = stream;
    this.#lostLine = lostLine;
    // Whoever read has gone: nobody is left to be told.
    stream.on("error", ignore);
    process.on("exit", () => this.#send());
  }

  /** Takes a line, with its end. */
  write(line: string): void {
    if (this.#stream.writableLength + this.#lines.length > waitingBytesMax) {
      this.#lost += 1;
      return;
    }
    if (this.#lost > 0) {
      this.#lines += this.#lostLine(this.#lost);
      this.#lost = 0;
    }
    this.#lines += line;
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => this.#send());
  }

  /** Calls back once what was written before is out, or cannot be any more. */
  flush(done: (error?: Error) => void = ignore): void {
    if (this.#stream.writable) this.#stream.write(this.#take(), (error) => done(error ?? undefined));
    else done();
  }

  #send(): void {
    this.#scheduled = false;
    if (this.#lines !== "" && this.#stream.writable) this.#stream.write(this.#take());
  }

  #take(): string {
    const lines = this.#lines;
    this.#lines = "";
    return lines;
  }
}

function ignore(): void {}
