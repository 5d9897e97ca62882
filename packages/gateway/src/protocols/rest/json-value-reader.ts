import { ConnectError } from "@connectrpc/connect";
import { CollectedBytes, noBytes } from "../../exchange/index.ts";
import { problem, withMessage } from "../../errors/index.ts";
import { messageTooLarge } from "../shared/compression.ts";
import type { MessageSplitter } from "../shared/message-splitter.ts";

/** What may come next between two values. */
type Place = "start" | "sequence" | "first" | "value" | "separator" | "end";

/** What the value that is being read begins with: an object or array, a string, or anything else. */
type ValueKind = "nested" | "string" | "scalar";

/** Reads the values that are found, such as those of a request. */
export interface ValueStream<T> {
  read(value: Uint8Array): T;
  /** Returns what a body of no values stands for. */
  end(): T | undefined;
}

/**
 * Reads a body's messages from JSON values that follow each other, with or without white space between them, or from one
 * JSON array of them.
 *
 * It only finds where values end; whether they are JSON is judged by the stream that reads them. Time and memory are in
 * proportion to the bytes of a value that have arrived. Throws a `ConnectError` with the number of the message: what the
 * stream throws, `InvalidArgument` for an array that is none, or `ResourceExhausted` as soon as a value is longer than
 * the limit.
 */
export class JsonValueReader<T> implements MessageSplitter<T> {
  readonly #stream: ValueStream<T>;
  readonly #valueMaxBytes: number;
  #place: Place;
  #number = 1;
  #piece: Uint8Array = noBytes;
  #at = 0;
  /** The kind of the value that has begun; `undefined` between values. */
  #kind: ValueKind | undefined;
  #depth = 0;
  #inString = false;
  #escaped = false;
  /** The part of the value that came in earlier pieces. */
  #partial: CollectedBytes | undefined;

  /** @param mayBeArray - whether a body that begins with `[` is an array of messages, rather than a message */
  constructor(valueMaxBytes: number, stream: ValueStream<T>, mayBeArray: boolean) {
    this.#valueMaxBytes = valueMaxBytes;
    this.#stream = stream;
    this.#place = mayBeArray ? "start" : "sequence";
  }

  add(piece: Uint8Array): void {
    this.#piece = piece;
    this.#at = 0;
  }

  take(): T | undefined {
    return this.#numbered(() => {
      const isNew = this.#kind === undefined;
      if (isNew && !this.#findValue()) return undefined;
      const start = this.#at;
      // Whatever it begins with, so that each value takes a byte.
      if (isNew && this.#kind === "scalar") this.#at++;
      const found = this.#findEnd();
      const part = this.#piece.subarray(start, this.#at);
      if (found) return this.#read(part);
      this.#collect(part);
      // So that the chunk is not kept while we wait for the client.
      this.add(noBytes);
      return undefined;
    });
  }

  end(): T | undefined {
    return this.#numbered(() => {
      const inArray = this.#place !== "start" && this.#place !== "sequence" && this.#place !== "end";
      if (inArray) throw problem("ERR_MESSAGE_INVALID", "the array is not closed");
      return this.#kind === undefined ? this.#stream.end() : this.#read(noBytes);
    });
  }

  /** Skips what is between values, and returns whether one begins. */
  #findValue(): boolean {
    for (; this.#at < this.#piece.byteLength; this.#at++) {
      const byte = this.#piece[this.#at];
      if (isSpace(byte) || this.#takeMark(byte)) continue;
      if (this.#place === "separator" || this.#place === "end") {
        throw problem("ERR_MESSAGE_INVALID", 'expected "," or "]" after a value of the array');
      }
      this.#kind = byte === openBrace || byte === openBracket ? "nested" : byte === quote ? "string" : "scalar";
      return true;
    }
    return false;
  }

  /** Takes a byte of the array itself, and returns whether it is one. */
  #takeMark(byte: number | undefined): boolean {
    const place = this.#place;
    if (place === "start") this.#place = byte === openBracket ? "first" : "sequence";
    else if (byte === comma && place === "separator") this.#place = "value";
    else if (byte === closeBracket && (place === "first" || place === "separator")) this.#place = "end";
    else return false;
    return this.#place !== "sequence";
  }

  /** Goes on to the end of the value, and returns whether it is in this piece. */
  #findEnd(): boolean {
    const piece = this.#piece;
    const isScalar = this.#kind === "scalar";
    for (; this.#at < piece.byteLength; this.#at++) {
      const byte = piece[this.#at];
      if (isScalar && endsScalar(byte)) return true;
      if (!isScalar && this.#isLast(byte)) {
        this.#at++;
        return true;
      }
    }
    return false;
  }

  /** Takes a byte of a value that is no scalar, and returns whether the value ends with it. */
  #isLast(byte: number | undefined): boolean {
    if (this.#escaped) this.#escaped = false;
    else if (this.#inString) {
      if (byte === backslash) this.#escaped = true;
      else if (byte === quote) this.#inString = false;
    } else if (byte === quote) this.#inString = true;
    else if (byte === openBrace || byte === openBracket) this.#depth++;
    else if (byte === closeBrace || byte === closeBracket) this.#depth--;
    return this.#depth === 0 && !this.#inString;
  }

  /** Adds a part of a value. @throws ConnectError `ResourceExhausted` above the limit */
  #collect(part: Uint8Array): void {
    const partial = (this.#partial ??= new CollectedBytes(0, this.#valueMaxBytes));
    if (partial.byteLength + part.byteLength > this.#valueMaxBytes) throw messageTooLarge(this.#valueMaxBytes);
    partial.add(part);
  }

  /** Reads the value that ends with these bytes. */
  #read(rest: Uint8Array): T {
    const isWhole = this.#partial === undefined && rest.byteLength <= this.#valueMaxBytes;
    // Most values arrive in one piece and are not copied.
    if (!isWhole) this.#collect(rest);
    const bytes = this.#partial?.bytes ?? rest;
    this.#partial = undefined;
    this.#kind = undefined;
    if (this.#place !== "sequence") this.#place = "separator";
    const message = this.#stream.read(bytes);
    this.#number++;
    return message;
  }

  #numbered(read: () => T | undefined): T | undefined {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof ConnectError)) throw error;
      throw withMessage(error, `message ${this.#number}: ${error.rawMessage}`);
    }
  }
}

const quote = 0x22;
const comma = 0x2c;
const openBracket = 0x5b;
const backslash = 0x5c;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

// The white space of RFC 8259 §2.
function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

// What cannot be in a number or a literal name, and so ends it.
const marks: ReadonlySet<number | undefined> = new Set([
  comma,
  quote,
  openBracket,
  closeBracket,
  openBrace,
  closeBrace,
]);

function endsScalar(byte: number | undefined): boolean {
  return isSpace(byte) || marks.has(byte);
}
