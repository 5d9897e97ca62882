import { ConnectError } from "@connectrpc/connect";
import { CollectedBytes, noBytes } from "../../http/index.ts";
import { problem, withMessage } from "../../protobuf/index.ts";
import { messageTooLargeError } from "../envelope/compression.ts";
import type { MessageSplitter } from "../envelope/message-splitter.ts";

/** The reader's state between two JSON values, which determines the bytes that may follow. */
type State = "start" | "sequence" | "first" | "value" | "separator" | "end";

/** The kind of the current value. A scalar is any value other than an object, an array or a string. */
type ValueKind = "nested" | "string" | "scalar";

/** Receives a body's values, for example to convert each value to a message. */
interface ValueStream<T> {
  read(value: Uint8Array): T;
  /** Called when the body ends. May return a message for a body without values. */
  end(): T | undefined;
}

/**
 * Reads a body's messages from consecutive JSON values, or from one JSON array. White space between values is optional.
 *
 * The reader finds only the end of each value. The stream checks whether each value is valid JSON. Time and memory are
 * proportional to a value's received bytes. Throws a `ConnectError` with the message number: an error of the stream,
 * `InvalidArgument` for a malformed array, or `ResourceExhausted` as soon as a value exceeds the limit.
 */
export class JsonValueReader<T> implements MessageSplitter<T> {
  readonly #stream: ValueStream<T>;
  readonly #maxValueBytes: number;
  #state: State;
  #number = 1;
  #piece: Uint8Array = noBytes;
  #at = 0;
  /** The kind of the current value, or `undefined` between values. */
  #kind: ValueKind | undefined;
  #depth = 0;
  #inString = false;
  #escaped = false;
  /** The bytes of the current value in earlier pieces, or `undefined` if there are none. */
  #partial: CollectedBytes | undefined;

  /** @param mayBeArray - whether a body that starts with `[` is a message array instead of one message */
  constructor(maxValueBytes: number, stream: ValueStream<T>, mayBeArray: boolean) {
    this.#maxValueBytes = maxValueBytes;
    this.#stream = stream;
    this.#state = mayBeArray ? "start" : "sequence";
  }

  add(piece: Uint8Array): void {
    this.#piece = piece;
    this.#at = 0;
  }

  take(): T | undefined {
    return this.#withMessageNumber(() => {
      const isNew = this.#kind === undefined;
      if (isNew && !this.#findValue()) return undefined;
      const start = this.#at;
      // Always consumes the first byte, because a value with an invalid first byte would otherwise be empty.
      if (isNew && this.#kind === "scalar") this.#at++;
      const found = this.#findEnd();
      const part = this.#piece.subarray(start, this.#at);
      if (found) return this.#read(part);
      this.#collect(part);
      // Releases the chunk while waiting for the client.
      this.add(noBytes);
      return undefined;
    });
  }

  end(): T | undefined {
    return this.#withMessageNumber(() => {
      const inArray = this.#state !== "start" && this.#state !== "sequence" && this.#state !== "end";
      if (inArray) throw problem("ERR_MESSAGE_INVALID", "the array is not closed");
      return this.#kind === undefined ? this.#stream.end() : this.#read(noBytes);
    });
  }

  /** Skips to the next value. Returns `false` if the piece contains no further value. */
  #findValue(): boolean {
    for (; this.#at < this.#piece.byteLength; this.#at++) {
      const byte = this.#piece[this.#at];
      if (isJsonSpace(byte) || this.#consumePunctuation(byte)) continue;
      if (this.#state === "separator" || this.#state === "end") {
        throw problem("ERR_MESSAGE_INVALID", 'expected "," or "]" after a value of the array');
      }
      this.#kind = byte === openBrace || byte === openBracket ? "nested" : byte === quoteByte ? "string" : "scalar";
      return true;
    }
    return false;
  }

  /** Consumes the array's own bracket or comma. Returns `false` for any other byte. */
  #consumePunctuation(byte: number | undefined): boolean {
    const state = this.#state;
    if (state === "start") this.#state = byte === openBracket ? "first" : "sequence";
    else if (byte === comma && state === "separator") this.#state = "value";
    else if (byte === closeBracket && (state === "first" || state === "separator")) this.#state = "end";
    else return false;
    return this.#state !== "sequence";
  }

  /** Advances to the end of the value. Returns `false` if the value continues in the next piece. */
  #findEnd(): boolean {
    const piece = this.#piece;
    const isScalar = this.#kind === "scalar";
    for (; this.#at < piece.byteLength; this.#at++) {
      const byte = piece[this.#at];
      if (isScalar && (isJsonSpace(byte) || punctuation.has(byte))) return true;
      if (!isScalar && this.#isLast(byte)) {
        this.#at++;
        return true;
      }
    }
    return false;
  }

  /** Consumes a byte in a string, object or array. Returns whether the byte ends the string, object or array. */
  #isLast(byte: number | undefined): boolean {
    if (this.#escaped) this.#escaped = false;
    else if (this.#inString) {
      if (byte === backslash) this.#escaped = true;
      else if (byte === quoteByte) this.#inString = false;
    } else if (byte === quoteByte) this.#inString = true;
    else if (byte === openBrace || byte === openBracket) this.#depth++;
    else if (byte === closeBrace || byte === closeBracket) this.#depth--;
    return this.#depth === 0 && !this.#inString;
  }

  /** Adds bytes to the current value. @throws ConnectError `ResourceExhausted` above the limit */
  #collect(part: Uint8Array): void {
    const partial = (this.#partial ??= new CollectedBytes(0, this.#maxValueBytes));
    if (partial.byteLength + part.byteLength > this.#maxValueBytes) throw messageTooLargeError(this.#maxValueBytes);
    partial.add(part);
  }

  /** Reads a complete value, which is the collected bytes followed by `rest`. */
  #read(rest: Uint8Array): T {
    const isInOnePiece = this.#partial === undefined && rest.byteLength <= this.#maxValueBytes;
    // Most values arrive in one piece and are not copied.
    if (!isInOnePiece) this.#collect(rest);
    const bytes = this.#partial?.bytes ?? rest;
    this.#partial = undefined;
    this.#kind = undefined;
    if (this.#state !== "sequence") this.#state = "separator";
    const message = this.#stream.read(bytes);
    this.#number++;
    return message;
  }

  #withMessageNumber(read: () => T | undefined): T | undefined {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof ConnectError)) throw error;
      throw withMessage(error, `message ${this.#number}: ${error.rawMessage}`);
    }
  }
}

const quoteByte = 0x22;
const comma = 0x2c;
const openBracket = 0x5b;
const backslash = 0x5c;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

// Returns whether a byte is white space (RFC 8259 §2).
function isJsonSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

// Characters that end a number or a literal name.
const punctuation: ReadonlySet<number | undefined> = new Set([
  comma,
  quoteByte,
  openBracket,
  closeBracket,
  openBrace,
  closeBrace,
]);
