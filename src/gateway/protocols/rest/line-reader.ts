import type { Message } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { allocateBytes } from "../../carriers/index.ts";
import { errorWithHttpStatus, httpStatusOf, type RequestStream } from "../../rest/index.ts";
import { messageTooLarge } from "../compression.ts";
import type { MessageSplitter } from "../message-splitter.ts";

const lineFeed = 0x0a;
const nothing = new Uint8Array(0);

/**
 * Reads a body's messages, one on each line. Blank lines are skipped but counted; the last line may lack its line feed.
 *
 * Time and memory are in proportion to the bytes of a line that have arrived, in however many pieces. Throws a
 * `ConnectError` with the number of the line: what the stream throws, or `ResourceExhausted` as soon as a line is
 * longer than the limit.
 */
export class LineReader implements MessageSplitter<Message> {
  readonly #stream: RequestStream;
  readonly #partial: PartialLine;
  #piece: Uint8Array = nothing;
  #at = 0;
  #number = 1;

  constructor(lineMaxBytes: number, stream: RequestStream) {
    this.#partial = new PartialLine(lineMaxBytes);
    this.#stream = stream;
  }

  add(piece: Uint8Array): void {
    this.#piece = piece;
    this.#at = 0;
  }

  take(): Message | undefined {
    try {
      return this.#take();
    } catch (error) {
      throw inLine(this.#number, error);
    }
  }

  end(): Message | undefined {
    try {
      const line = this.#partial.complete(nothing);
      if (!isBlank(line)) return this.#stream.read(line);
    } catch (error) {
      throw inLine(this.#number, error);
    }
    return this.#stream.end();
  }

  #take(): Message | undefined {
    const piece = this.#piece;
    for (;;) {
      if (this.#partial.isEmpty) this.#skipEmptyLines();
      const at = this.#at;
      const end = piece.indexOf(lineFeed, at);
      if (end < 0) break;
      const line = this.#partial.complete(piece.subarray(at, end));
      this.#at = end + 1;
      const message = isBlank(line) ? undefined : this.#stream.read(line);
      this.#number += 1;
      if (message !== undefined) return message;
    }
    this.#partial.add(piece.subarray(this.#at));
    // So that the chunk is not kept while we wait for the client.
    this.add(nothing);
    return undefined;
  }

  // So that a body of nothing but empty lines costs little.
  #skipEmptyLines(): void {
    const start = this.#at;
    while (this.#piece[this.#at] === lineFeed) this.#at += 1;
    this.#number += this.#at - start;
  }
}

function inLine(number: number, error: unknown): unknown {
  if (!(error instanceof ConnectError)) return error;
  return errorWithHttpStatus(`line ${number}: ${error.rawMessage}`, error.code, httpStatusOf(error));
}

/** A line that has arrived in part. */
class PartialLine {
  readonly #maxBytes: number;
  #bytes: Uint8Array = nothing;
  #length = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get isEmpty(): boolean {
    return this.#length === 0;
  }

  /** Adds a part of the line. @throws ConnectError `ResourceExhausted` above the limit */
  add(piece: Uint8Array): void {
    if (piece.byteLength === 0) return;
    const length = this.#length + piece.byteLength;
    if (length > this.#maxBytes) throw messageTooLarge(this.#maxBytes);
    if (length > this.#bytes.byteLength) this.#grow(length);
    this.#bytes.set(piece, this.#length);
    this.#length = length;
  }

  /** Adds the rest, and returns the line. */
  complete(rest: Uint8Array): Uint8Array {
    // Most lines arrive in one piece and are not copied.
    if (this.#length === 0 && rest.byteLength <= this.#maxBytes) return rest;
    this.add(rest);
    const line = this.#bytes.subarray(0, this.#length);
    this.#bytes = nothing;
    this.#length = 0;
    return line;
  }

  /** Grows to twice what is needed, so that a line in many pieces is copied about once in all. */
  #grow(length: number): void {
    const before = this.#bytes;
    this.#bytes = allocateBytes(Math.min(this.#maxBytes, 2 * length));
    this.#bytes.set(before.subarray(0, this.#length));
  }
}

// The white space of RFC 8259 §2. For most lines the first byte decides.
function isBlank(line: Uint8Array): boolean {
  for (let at = 0; at < line.byteLength; at += 1) {
    const byte = line[at];
    if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0d) return false;
  }
  return true;
}
