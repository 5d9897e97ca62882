import type { Message } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { allocateBytes } from "../../carriers/index.ts";
import { errorWithHttpStatus, httpStatusOf, type MessageStream } from "../../rest/index.ts";
import { messageTooLarge } from "../compression.ts";

const lineFeed = 0x0a;
const nothing = new Uint8Array(0);

/**
 * Reads the messages on the lines of a body as they arrive. Blank lines are skipped, but counted; the last line may lack
 * its line feed.
 *
 * A line takes time and memory in proportion to the bytes of it that have arrived, in however many pieces.
 *
 * @throws ConnectError with the number of the line: what `stream` throws, or `ResourceExhausted` as soon as a line is
 * longer than `lineMaxBytes`
 */
export async function* readLines(
  pieces: AsyncIterable<Uint8Array>,
  lineMaxBytes: number,
  stream: MessageStream,
): AsyncGenerator<Message> {
  const read = (line: Uint8Array): Message => stream.read(line);
  const begun = new BegunLine(lineMaxBytes);
  let number = 1;
  for await (const piece of pieces) {
    let at = 0;
    for (let end = piece.indexOf(lineFeed); end >= 0; end = piece.indexOf(lineFeed, at)) {
      // A body of nothing but empty lines costs little.
      if (end === at && begun.isEmpty) {
        while (piece[at] === lineFeed) {
          number += 1;
          at += 1;
        }
        continue;
      }
      const line = inLine(number, begun.complete, piece.subarray(at, end));
      if (!isBlank(line)) yield inLine(number, read, line);
      number += 1;
      at = end + 1;
    }
    inLine(number, begun.add, piece.subarray(at));
  }
  const line = begun.complete(new Uint8Array(0));
  if (!isBlank(line)) yield inLine(number, read, line);
  const last = stream.end();
  if (last !== undefined) yield last;
}

/** Calls a function with bytes of a line, whose number its errors then name. */
function inLine<T>(number: number, call: (bytes: Uint8Array) => T, bytes: Uint8Array): T {
  try {
    return call(bytes);
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error;
    throw errorWithHttpStatus(`line ${number}: ${error.rawMessage}`, error.code, httpStatusOf(error));
  }
}

/** A line that has arrived in part. */
class BegunLine {
  readonly #maxBytes: number;
  #bytes: Uint8Array = nothing;
  #length = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get isEmpty(): boolean {
    return this.#length === 0;
  }

  /** Adds some of it. @throws ConnectError `ResourceExhausted` above the limit */
  readonly add = (piece: Uint8Array): void => {
    if (piece.byteLength === 0) return;
    const length = this.#length + piece.byteLength;
    if (length > this.#maxBytes) throw messageTooLarge(this.#maxBytes);
    if (length > this.#bytes.byteLength) this.#grow(length);
    this.#bytes.set(piece, this.#length);
    this.#length = length;
  };

  /** Adds the rest, and returns the line. */
  readonly complete = (rest: Uint8Array): Uint8Array => {
    // Most lines arrive in one piece and are not copied.
    if (this.#length === 0 && rest.byteLength <= this.#maxBytes) return rest;
    this.add(rest);
    const line = this.#bytes.subarray(0, this.#length);
    this.#bytes = nothing;
    this.#length = 0;
    return line;
  };

  /** Twice what is needed, so that a line in many pieces is copied once on the whole. */
  #grow(length: number): void {
    const before = this.#bytes;
    this.#bytes = allocateBytes(Math.min(this.#maxBytes, 2 * length));
    this.#bytes.set(before.subarray(0, this.#length));
  }
}

// The white space of RFC 8259 §2.
function isBlank(line: Uint8Array): boolean {
  return line.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d);
}
