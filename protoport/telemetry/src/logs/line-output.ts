import type { Writable } from "node:stream";

/**
 * Maximum number of bytes that are buffered for the log's reader. Further lines are dropped and counted.
 *
 * 4 MiB hold about ten thousand lines, which a busy server writes in a second. Another 4 MiB are reserved for the lines
 * of {@link LineOutput.reserve}.
 */
const maxBufferedBytes = 4 * 1024 * 1024;

/** Accepts lines, including their line breaks. */
interface LineWriter {
  write(line: string): void;
}

/**
 * Writes log lines without blocking calls. All lines from the same event loop turn are written together. While the
 * buffer is full, further lines are dropped, so that memory is bounded if nothing reads the log. Once the log is read
 * again, a line reports how many lines were dropped.
 */
export class LineOutput implements LineWriter {
  /** A writer that may also use the reserved buffer space, so that its lines are dropped last. */
  readonly reserve: LineWriter = { write: (line) => this.#add(line, 2 * maxBufferedBytes) };
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
    // Errors are ignored. The log's reader has closed the stream, so errors cannot be logged.
    stream.on("error", ignore);
    process.on("exit", () => this.#send());
  }

  write(line: string): void {
    this.#add(line, maxBufferedBytes);
  }

  #add(line: string, maxBytes: number): void {
    const bufferedBytes = this.#stream.writableLength + this.#lines.length;
    if (bufferedBytes > maxBytes) {
      this.#dropped += 1;
      return;
    }
    if (this.#lines === "") setImmediate(() => this.#send());
    // Dropped lines are reported only below the limit for ordinary lines, so that the reports do not fill the reserve.
    if (this.#dropped > 0 && bufferedBytes <= maxBufferedBytes) {
      this.#lines += this.#formatDropped(this.#dropped);
      this.#dropped = 0;
    }
    this.#lines += line;
  }

  /** Calls `done` when all earlier lines are written, or when writing them has failed. */
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
