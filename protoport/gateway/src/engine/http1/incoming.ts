/** The received bytes that are not consumed yet: a chunk from the socket, or bytes retained from earlier chunks. */
export class Incoming {
  bytes: Buffer = noBytes;
  /** Position in `bytes` where the unconsumed bytes start. */
  at = 0;
  unusedBytes = 0;
  /** Position in `bytes` where the search for a section's end resumes. */
  #searchedBytes = 0;
  /** The buffer for retained bytes, which grows as needed. `bytes` is either part of this buffer or a chunk. */
  #buffer: Buffer = noBytes;

  /** Adds a chunk. The chunk is copied only if unconsumed bytes precede the chunk. */
  add(chunk: Buffer): void {
    if (this.unusedBytes === 0) {
      this.bytes = chunk;
    } else {
      const end = this.bytes.byteLength;
      const buffer = this.#reserve(end + chunk.byteLength);
      buffer.set(chunk, end);
      this.bytes = buffer.subarray(0, end + chunk.byteLength);
    }
    this.unusedBytes += chunk.byteLength;
  }

  /**
   * Consumes a complete head or trailer section, up to its final empty line (RFC 9112 §2.1).
   *
   * @returns the position of the empty line. Consumes nothing and returns "open" if the empty line has not arrived, or
   * "invalid" if a line ends in a lone CR or LF, which other recipients might accept (§2.2)
   */
  consumeSection(): number | "open" | "invalid" {
    const end = this.#findSectionEnd();
    if (typeof end === "number") this.consume(end + emptyLineBytes);
    return end;
  }

  #findSectionEnd(): number | "open" | "invalid" {
    const { bytes, at } = this;
    if (bytes[at] === cr && bytes[at + 1] === lf) return at;
    const end = bytes.indexOf(lineEnds, Math.max(at, this.#searchedBytes - 3));
    if (end >= 0) return end + 2;
    const from = Math.max(at, bytes[this.#searchedBytes - 1] === cr ? this.#searchedBytes - 1 : this.#searchedBytes);
    this.#searchedBytes = bytes.byteLength;
    return loneLineEnd.test(bytes.toString("latin1", from)) ? "invalid" : "open";
  }

  /** Consumes up to `bytes` bytes, depending on how many have arrived. */
  consumePiece(bytes: number): Buffer {
    const piece = this.bytes.subarray(this.at, this.at + bytes);
    this.consume(this.at + piece.byteLength);
    return piece;
  }

  /** Marks all bytes before `end` as consumed. */
  consume(end: number): void {
    this.at = end;
    this.unusedBytes = this.bytes.byteLength - end;
    // Releases the chunk, which would otherwise stay in memory until another chunk arrives.
    if (this.unusedBytes === 0) this.clear();
  }

  /** Copies the unconsumed bytes, so that the chunk that contains them can be freed. */
  retain(): void {
    if (this.at === 0 && this.bytes.buffer === this.#buffer.buffer) return;
    const buffer = Buffer.allocUnsafeSlow(this.unusedBytes);
    buffer.set(this.bytes.subarray(this.at));
    this.#buffer = this.bytes = buffer;
    this.#searchedBytes = Math.max(0, this.#searchedBytes - this.at);
    this.at = 0;
  }

  clear(): void {
    this.bytes = this.#buffer = noBytes;
    this.at = this.unusedBytes = this.#searchedBytes = 0;
  }

  /** Returns the buffer with its content, after growing the buffer to at least `bytes` bytes. */
  #reserve(bytes: number): Buffer {
    if (bytes <= this.#buffer.byteLength) return this.#buffer;
    const larger = Buffer.allocUnsafeSlow(Math.max(bytes, 2 * this.#buffer.byteLength));
    larger.set(this.bytes);
    return (this.#buffer = larger);
  }
}

const noBytes = Buffer.alloc(0);
const cr = 0x0d;
const lf = 0x0a;
const emptyLineBytes = 2;
const lineEnds = Buffer.from("\r\n\r\n");
// A CR at the end of the received bytes does not match, because its LF may still arrive.
const loneLineEnd = /(?:^|[^\r])\n|\r[^\n]/;
