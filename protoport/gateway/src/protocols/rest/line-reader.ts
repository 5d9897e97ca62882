import type { Message } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { CollectedBytes, noBytes } from "../../http/index.ts";
import { withMessage } from "../../protobuf/index.ts";
import type { RequestStream } from "./rules/index.ts";
import { messageTooLargeError } from "../envelope/compression.ts";
import type { MessageSplitter } from "../envelope/message-splitter.ts";

const lineFeed = 0x0a;

/**
 * Reads a body with one message per line. Blank lines are skipped but counted. The last line may lack a line feed.
 *
 * Time and memory are proportional to the received bytes, however many pieces a line has. Throws a `ConnectError` with
 * the line number: an error of the stream, or `ResourceExhausted` as soon as a line exceeds the limit.
 */
export class LineReader implements MessageSplitter<Message> {
  readonly #stream: RequestStream;
  readonly #maxLineBytes: number;
  /** The bytes of the current line in earlier pieces, or `undefined` if there are none. */
  #partial: CollectedBytes | undefined;
  #piece: Uint8Array = noBytes;
  #at = 0;
  #number = 1;

  constructor(maxLineBytes: number, stream: RequestStream) {
    this.#maxLineBytes = maxLineBytes;
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
      throw withLineNumber(this.#number, error);
    }
  }

  end(): Message | undefined {
    try {
      const line = this.#complete(noBytes);
      if (!isBlank(line)) return this.#stream.read(line);
    } catch (error) {
      throw withLineNumber(this.#number, error);
    }
    return this.#stream.end();
  }

  #take(): Message | undefined {
    const piece = this.#piece;
    for (;;) {
      if (this.#partial === undefined) this.#skipEmptyLines();
      const at = this.#at;
      const end = piece.indexOf(lineFeed, at);
      if (end < 0) break;
      const line = this.#complete(piece.subarray(at, end));
      this.#at = end + 1;
      const message = isBlank(line) ? undefined : this.#stream.read(line);
      this.#number += 1;
      if (message !== undefined) return message;
    }
    this.#collect(piece.subarray(this.#at));
    // Releases the chunk while waiting for the client.
    this.add(noBytes);
    return undefined;
  }

  /** Adds bytes to the current line. @throws ConnectError `ResourceExhausted` above the limit */
  #collect(part: Uint8Array): void {
    if (part.byteLength === 0) return;
    const partial = (this.#partial ??= new CollectedBytes(0, this.#maxLineBytes));
    if (partial.byteLength + part.byteLength > this.#maxLineBytes) throw messageTooLargeError(this.#maxLineBytes);
    partial.add(part);
  }

  #complete(rest: Uint8Array): Uint8Array {
    // Most lines arrive in one piece and are not copied.
    if (this.#partial === undefined && rest.byteLength <= this.#maxLineBytes) return rest;
    this.#collect(rest);
    const line = this.#partial?.bytes ?? noBytes;
    this.#partial = undefined;
    return line;
  }

  // Skips empty lines in a short loop, so that a body with only empty lines is cheap.
  #skipEmptyLines(): void {
    const start = this.#at;
    while (this.#piece[this.#at] === lineFeed) this.#at += 1;
    this.#number += this.#at - start;
  }
}

function withLineNumber(number: number, error: unknown): unknown {
  if (!(error instanceof ConnectError)) return error;
  return withMessage(error, `line ${number}: ${error.rawMessage}`);
}

// Returns whether a line has only white space (RFC 8259 §2). For most lines, the first byte decides.
function isBlank(line: Uint8Array): boolean {
  for (let at = 0; at < line.byteLength; at += 1) {
    const byte = line[at];
    if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0d) return false;
  }
  return true;
}
