import type { Writable } from "node:stream";

/**
 * The most bytes of lines that wait for the reader of the log; further lines are dropped and counted.
 *
 * 4 MiB are about ten thousand lines: what a busy server writes in a second. The same amount again is reserved for
 * lines that others must not crowd out.
 */
const waitingBytesMax = 4 * 1024 * 1024;

/** Accepts lines, including their line breaks. */
interface LineWriter {
  write(line: string): void;
}

/**
 * Writes the lines of a log without ever holding up a call. The lines of one turn of the event loop leave in one write;
 * while too many wait, further ones are dropped. So a log that nobody reads takes bounded memory, and once it is read
 * again, it says how many lines were lost.
 */
export class LineOutput implements LineWriter {
  /** The writer of lines that are accepted even when others are already dropped. */
  readonly reserve: LineWriter = { write: (line) => this.#add(line, 2 * waitingBytesMax) };
  readonly #stream: Writable;
  readonly #lostLine: (lines: number) => string;
  #lines = "";
  #lost = 0;

  /**
   * @param stream - the destination, such as `process.stderr`
   * @param lostLine - formats the line that says how many lines were lost
   */
  constructor(stream: Writable, lostLine: (lines: number) => string) {
    this.#stream = stream;
    this.#lostLine = lostLine;
    // The reader is gone, and nobody can be told.
    stream.on("error", ignore);
    process.on("exit", () => this.#send());
  }

  /** Writes a line, including its line break. */
  write(line: string): void {
    this.#add(line, waitingBytesMax);
  }

  #add(line: string, bytesMax: number): void {
    const waitingBytes = this.#stream.writableLength + this.#lines.length;
    if (waitingBytes > bytesMax) {
      this.#lost += 1;
      return;
    }
    if (this.#lines === "") setImmediate(() => this.#send());
    // Only once there is room for all lines, or the lines about losses would fill the reserve.
    if (this.#lost > 0 && waitingBytes <= waitingBytesMax) {
      this.#lines += this.#lostLine(this.#lost);
      this.#lost = 0;
    }
    this.#lines += line;
  }

  /** Calls back once all earlier lines are written, or cannot be written any more. */
  flush(done: (error?: Error) => void = ignore): void {
    this.#stream.write(this.#take(), (error) => done(error ?? undefined));
  }

  #send(): void {
    this.#stream.write(this.#take());
  }

  #take(): string {
    const lines = this.#lines;
    this.#lines = "";
    return lines;
  }
}

function ignore(): void {}
