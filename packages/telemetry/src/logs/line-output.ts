import type { Writable } from "node:stream";

/**
 * The most bytes of log lines that are buffered for the reader; further lines are dropped and counted.
 *
 * 4 MiB are about ten thousand lines, which a busy server writes in a second. The same amount again is reserved for
 * lines that must not be dropped because of others.
 */
const bufferedBytesMax = 4 * 1024 * 1024;

/** Accepts lines, including their line breaks. */
interface LineWriter {
  write(line: string): void;
}

/**
 * Writes log lines without blocking calls. The lines of one turn of the event loop are written together. While too many
 * are buffered, further ones are dropped, so that a log without a reader takes bounded memory; once it is read again, a
 * line reports how many were dropped.
 */
export class LineOutput implements LineWriter {
  /** The writer of lines that are accepted when those of others are already dropped. */
  readonly reserve: LineWriter = { write: (line) => this.#add(line, 2 * bufferedBytesMax) };
  readonly #stream: Writable;
  readonly #formatDropped: (lines: number) => string;
  #lines = "";
  #dropped = 0;

  /**
   * @param stream - the destination, such as `process.stderr`
   * @param formatDropped - formats the line that reports how many lines were dropped
   */
  constructor(stream: Writable, formatDropped: (lines: number) => string) {
    this.#stream = stream;
    this.#formatDropped = formatDropped;
    // The reader has closed the stream, so the error cannot be reported.
    stream.on("error", ignore);
    process.on("exit", () => this.#send());
  }

  /** Writes a line, including its line break. */
  write(line: string): void {
    this.#add(line, bufferedBytesMax);
  }

  #add(line: string, bytesMax: number): void {
    const bufferedBytes = this.#stream.writableLength + this.#lines.length;
    if (bufferedBytes > bytesMax) {
      this.#dropped += 1;
      return;
    }
    if (this.#lines === "") setImmediate(() => this.#send());
    // Only below the limit for all lines, or these reports would fill the reserve.
    if (this.#dropped > 0 && bufferedBytes <= bufferedBytesMax) {
      this.#lines += this.#formatDropped(this.#dropped);
      this.#dropped = 0;
    }
    this.#lines += line;
  }

  /** Calls back once all earlier lines are written, or writing them has failed. */
  flush(done: (error?: Error) => void = ignore): void {
    this.#stream.write(this.#takeLines(), (error) => done(error ?? undefined));
  }

  #send(): void {
    this.#stream.write(this.#takeLines());
  }

  #takeLines(): string {
    const lines = this.#lines;
    this.#lines = "";
    return lines;
  }
}

function ignore(): void {}
